// Package clientgo runs passes with client-go.
//
//	pods, revisions, err := clientgo.Observe(ctx, clientset, site, "site="+site.Name)
//	...
//	pass, err := workload.Plan(input)
//	...
//	err = clientgo.Run(ctx, clientset, pass)
//
// An operator that lists its pods from the API server before each pass observes its own writes. One that reads from a
// cache runs the pass with driver.Run, whose options take the ledgers that record the writes, and with the Sender of
// this package. What the operator writes outside of passes goes through a sender that records, too:
//
//	send := driver.Recording(clientgo.Sender(clientset), owner, pods)
//	_, err := send(ctx, &write.Write{Verb: write.Delete, Object: pod})
package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// Clientset has the clients of what a workload consists of. A kubernetes.Interface is one.
type Clientset interface {
	CoreV1() typedcorev1.CoreV1Interface
	AppsV1() typedappsv1.AppsV1Interface
}

// Observe lists the pods and the revisions that a workload controls, of those that a label selector matches. It reads
// from the API server, so that a pass observes what the one before it has written.
func Observe(
	ctx context.Context, c Clientset, owner metav1.Object, selector string,
) ([]*corev1.Pod, []*appsv1.ControllerRevision, error) {
	options := metav1.ListOptions{LabelSelector: selector}
	pods, err := c.CoreV1().Pods(owner.GetNamespace()).List(ctx, options)
	if err != nil {
		return nil, nil, fmt.Errorf("list pods: %w", err)
	}
	revisions, err := c.AppsV1().ControllerRevisions(owner.GetNamespace()).List(ctx, options)
	if err != nil {
		return nil, nil, fmt.Errorf("list revisions: %w", err)
	}
	return revision.ControlledBy(owner, pods.Items), revision.ControlledBy(owner, revisions.Items), nil
}

// Run runs a pass over pods, their claims and their revisions, and returns what failed. A write that was decided upon
// an older object is no failure: list the objects again, and make another pass.
func Run[W driver.Request](ctx context.Context, c Clientset, pass driver.Pass[W]) error {
	return driver.Run(ctx, pass, driver.Options[W]{Send: Sender(c)})
}

// Sender returns what sends the writes of pods, claims, revisions, Deployments and ReplicaSets, each in the namespace
// of its object. For a pass that writes objects of other kinds, as a status of your own, call Send with their clients.
func Sender(c Clientset) driver.Send {
	return func(ctx context.Context, w *write.Write) (write.Object, error) {
		namespace := w.Object.GetNamespace()
		switch w.Object.(type) {
		case *corev1.Pod:
			switch {
			case w.Verb == write.Evict:
				return nil, c.CoreV1().Pods(namespace).EvictV1(ctx, driver.Eviction(w))
			case w.Verb == write.Create && revision.HasUnknownFields(w.Object):
				return createPod(ctx, c, w)
			}
			return Send(ctx, c.CoreV1().Pods(namespace), w)
		case *corev1.PersistentVolumeClaim:
			return Send(ctx, c.CoreV1().PersistentVolumeClaims(namespace), w)
		case *appsv1.ControllerRevision:
			return Send(ctx, c.AppsV1().ControllerRevisions(namespace), w)
		case *appsv1.ReplicaSet:
			return Send(ctx, c.AppsV1().ReplicaSets(namespace), w)
		case *appsv1.Deployment:
			return Send(ctx, c.AppsV1().Deployments(namespace), w)
		}
		return nil, fmt.Errorf("send write: no client for %T", w.Object)
	}
}

// createPod creates a pod with the fields that its type lacks, which a client of pods would drop.
func createPod(ctx context.Context, c Clientset, w *write.Write) (write.Object, error) { //nolint:ireturn // as Send
	if c, ok := c.CoreV1().RESTClient().(*rest.RESTClient); ok && c == nil {
		return nil, errors.New("send write: a fake clientset cannot send fields that the types lack")
	}
	fields, err := revision.WithUnknownFields(w.Object)
	if err != nil {
		return nil, fmt.Errorf("send write: %w", err)
	}
	fields["apiVersion"], fields["kind"] = "v1", "Pod"
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("send write: %w", err)
	}
	request := c.CoreV1().RESTClient().Post().Namespace(w.Object.GetNamespace()).Resource("pods").
		SetHeader("Content-Type", "application/json").Body(body)
	if w.FieldOwner != "" {
		request.Param("fieldManager", w.FieldOwner)
	}
	pod := &corev1.Pod{}
	return pod, request.Do(ctx).Into(pod)
}

// Client is the client of one kind in a namespace, as client-go has one for pods, revisions and claims.
type Client[T write.Object] interface {
	// Get reads an object.
	Get(context.Context, string, metav1.GetOptions) (T, error)
	// Create creates an object.
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	// Patch changes an object.
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	// Delete deletes an object.
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// Send sends a write of an object, and returns the object as the API server answered; nil for a deletion. Errors are
// those of the client: see write.IsOutdated.
func Send[T write.Object]( //nolint:ireturn // nil is no object, which a nil T would be
	ctx context.Context, c Client[T], w *write.Write,
) (answer write.Object, err error) {
	object, ok := w.Object.(T)
	if !ok {
		return nil, fmt.Errorf("send write: %T is not a %T", w.Object, object)
	}
	switch w.Verb {
	case write.Get:
		answer, err = c.Get(ctx, object.GetName(), metav1.GetOptions{})
	case write.Create:
		answer, err = c.Create(ctx, object, metav1.CreateOptions{FieldManager: w.FieldOwner})
	case write.Delete:
		err = c.Delete(ctx, object.GetName(), w.DeleteOptions())
	case write.Patch:
		answer, err = patch(ctx, c, w)
	default: // no client of any kind evicts: see Sender
		err = fmt.Errorf("send write: unknown verb %q", w.Verb)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func patch[T write.Object](ctx context.Context, c Client[T], w *write.Write) (answer T, err error) {
	data, err := w.Data()
	if err != nil {
		return answer, err
	}
	options := metav1.PatchOptions{FieldManager: w.FieldOwner}
	if w.Force {
		options.Force = &w.Force
	}
	return c.Patch(ctx, w.Object.GetName(), w.Type, data, options, w.Subresources()...)
}

package containerrecreaterequest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/stored"
)

type request = v1beta1.ContainerRecreateRequest

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	request *request
	// malformed says what of the request cannot be read, and is then not in it.
	malformed error
	// pod of the name in the request; nil where there is none, or where it does not matter.
	pod *corev1.Pod
	// others are the requests of the same pod that are not over.
	others []*request
	now    time.Time
}

func (s *snapshot) input() containerrestart.Input {
	return containerrestart.Input{Request: s.request, Pod: s.pod, Others: s.others, Now: s.now}
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.request) }

// over says whether nothing more happens for a request than cleaning up.
func over(r *request) bool {
	return r.DeletionTimestamp != nil || r.Status.CompletionTime != nil || r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	raw, err := r.read(ctx, name)
	if err != nil || raw == nil {
		return nil, err
	}
	s := &snapshot{now: r.options.Now()}
	if s.request, s.malformed, err = decode(raw); err != nil {
		return nil, err
	}
	if s.pod, err = r.podOf(ctx, s.request); err != nil || over(s.request) {
		return s, err
	}
	s.others, err = r.ofPod(ctx, name.Namespace, s.request.Labels[v1beta1.ContainerRecreateRequestPodUIDKey])
	return s, err
}

// decode reads a request as far as it can be read: of a spec that is none only the name of the pod, of such a status nothing. The
// schema lets numbers and times pass that the types do not hold.
func decode(raw *unstructured.Unstructured) (r *request, malformed, err error) {
	r, malformed, err = stored.Decode[request](raw)
	if err != nil {
		malformed = err
		rest := maps.Clone(raw.Object)
		delete(rest, "status")
		r, _, err = stored.Decode[request](&unstructured.Unstructured{Object: rest})
	}
	if err != nil || malformed == nil {
		return r, nil, err
	}
	r.Spec.PodName, _, _ = unstructured.NestedString(raw.Object, "spec", "podName")
	return r, malformed, nil
}

// read is the request as the last write left it; nil when it is gone.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName) (*unstructured.Unstructured, error) {
	raw := stored.Untyped(gvk())
	var cached []*unstructured.Unstructured
	switch err := r.requests.Get(ctx, name, raw); {
	case err == nil:
		cached = append(cached, raw)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read request: %w", err)
	}
	all, _, err := r.writes.Overlay(ctx, name, cached)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// podOf reads the pod of a request, if it matters. The cache may lag behind that of requests. What would follow from a pod
// that is missing there cannot be taken back, and neither can it when a pod is given up that does not show yet what was
// done to it.
func (r *Reconciler) podOf(ctx context.Context, of *request) (*corev1.Pod, error) {
	name := types.NamespacedName{Namespace: of.Namespace, Name: of.Spec.PodName}
	if name.Name == "" || len(path.IsValidPathSegmentName(name.Name)) > 0 {
		return nil, nil // no pod has such a name, and nobody can ask for it
	}
	if over(of) {
		if !slices.Contains(of.Finalizers, v1beta1.ContainerRecreateRequestUnreadyAcquiredKey) {
			return nil, nil
		}
		return podFrom(ctx, r.live(), name)
	}
	pod, err := podFrom(ctx, r.client, name)
	if err != nil || pod != nil && string(pod.UID) == of.Labels[v1beta1.ContainerRecreateRequestPodUIDKey] {
		return pod, err
	}
	return podFrom(ctx, r.live(), name)
}

// podFrom is a pod; nil where there is none.
func podFrom(ctx context.Context, from client.Reader, name types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := from.Get(ctx, name, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read pod %s: %w", name.Name, err)
	}
	return pod, nil
}

// ofPod are the requests of a pod that are not over. They are the cache's.
func (r *Reconciler) ofPod(ctx context.Context, namespace, uid string) ([]*request, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk().GroupVersion().WithKind(kind + "List"))
	err := r.requests.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{byPod: uid}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("read requests of a pod: %w", err)
	}
	all := make([]*request, 0, len(list.Items))
	for i := range list.Items {
		one, _, err := decode(&list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", list.Items[i].GetName(), err)
		}
		all = append(all, one)
	}
	return all, nil
}

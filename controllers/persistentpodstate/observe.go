package persistentpodstate

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is what one pass looks at. Objects may be the cache's, and are only read.
type snapshot struct {
	name   types.NamespacedName
	latest stored.Latest
	// state is nil where there is none.
	state *podstate.State
	// askers are the workloads of the name.
	askers []podstate.Asker
	input  podstate.Input
	// unsupported is why the records stay as they are.
	unsupported  string
	recheckAfter time.Duration
	// err is of a read that Plan asked for.
	err error
}

// observe reads the PersistentPodState of a name, and the workloads that may ask for it.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.states.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	s := &snapshot{name: name, latest: latest}
	if latest.Object != nil {
		if err := s.decode(latest.Object); err != nil {
			return nil, err
		}
	}
	for _, kind := range r.kinds.all() {
		workload, err := r.workload(ctx, kind, name)
		if err != nil {
			return nil, err
		}
		if workload != nil {
			s.askers = append(s.askers, podstate.Asker{Kind: kind, Metadata: metadataOf(workload)})
		}
	}
	return s, nil
}

func (s *snapshot) decode(raw *unstructured.Unstructured) error {
	state, malformed, err := stored.Decode[podstate.State](raw)
	if err == nil {
		err = malformed
	}
	s.state = state
	return err
}

// workload reads a workload of a kind that is watched; nil where it does not exist.
func (r *Reconciler) workload(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	raw := stored.Untyped(kind)
	err := r.api.Cached.Get(ctx, name, raw, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, name.Name, err)
	}
	return raw, nil
}

func metadataOf(o *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Annotations: o.GetAnnotations(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// observeWorkload reads the workload of a PersistentPodState and its pods.
func (r *Reconciler) observeWorkload(ctx context.Context, s *snapshot) error {
	target, is := podstate.TargetOf(s.state)
	if !is {
		s.unsupported = fmt.Sprintf("spec.targetRef.apiVersion %q is no group and version", s.state.Spec.TargetReference.APIVersion)
		return nil
	}
	kind, why := r.kinds.of(ctx, target.GroupKind())
	if s.unsupported = why; why != "" {
		s.recheckAfter = recheck
		return nil
	}
	workload, err := r.workload(ctx, kind, types.NamespacedName{Namespace: s.name.Namespace, Name: target.Name})
	if err != nil {
		return err
	}
	s.input = podstate.Input{State: s.state, Now: r.api.Now(), Node: s.node(ctx, r.api.Client), Nodes: s.nodes(ctx, r.api.Client)}
	if workload == nil || workload.GetDeletionTimestamp() != nil {
		s.input.Workload.Gone = true
		return nil
	}
	s.input.Workload = podstates.WorkloadOf(workload, r.options.StartOrdinal)
	s.input.Pods, err = r.pods(ctx, s.name.Namespace, workload.GetUID())
	return err
}

// recheck is when to look again at a kind that is not watched.
const recheck = time.Minute

// pods lists the pods that a workload controls.
func (r *Reconciler) pods(ctx context.Context, namespace string, workload types.UID) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list, append(owned.In(namespace, workload), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if ref := metav1.GetControllerOfNoCopy(&list.Items[i]); ref != nil && ref.UID == workload {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// node returns a function that reads a node. An error is kept, and ends the pass.
func (s *snapshot) node(ctx context.Context, from client.Reader) func(string) *corev1.Node {
	return func(name string) *corev1.Node {
		if name == "" {
			return nil
		}
		node, err := stored.Find[corev1.Node](ctx, from, types.NamespacedName{Name: name})
		s.err = errors.Join(s.err, err)
		return node
	}
}

// nodes returns a function that lists all nodes. An error is kept, and ends the pass.
func (s *snapshot) nodes(ctx context.Context, from client.Reader) func() []*corev1.Node {
	return func() []*corev1.Node {
		var list corev1.NodeList
		if err := from.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("list nodes: %w", err))
		}
		return stored.Pointers(list.Items)
	}
}

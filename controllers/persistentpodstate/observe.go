package persistentpodstate

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// snapshot holds the objects that one pass read. They may be the cache's, and are only read.
type snapshot struct {
	name types.NamespacedName
	// state is nil where there is none.
	state *podstate.State
	// generation is what the workloads of the name ask for.
	generation podstate.Generation
	// input is that of the records; without a State for a PersistentPodState without records to look at.
	input podstate.Input
	// unsupported is why the records stay as they are.
	unsupported string
}

// observe reads the PersistentPodState of a name, the workloads that may ask for it, and the workload that its records
// are about.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	s := &snapshot{name: name}
	state, malformed, err := stored.Read[podstate.State](ctx, r.api.Cached, podstates.Kind(), name)
	if err := errors.Join(malformed, client.IgnoreNotFound(err)); err != nil {
		return nil, fmt.Errorf("read PersistentPodState: %w", err)
	}
	s.state = state
	if err := r.observeAskers(ctx, s); err != nil {
		return nil, err
	}
	if state == nil || state.DeletionTimestamp != nil || s.generation.Action == podstate.Delete {
		return s, nil
	}
	return s, r.observeWorkload(ctx, s)
}

// observeAskers reads the workloads of the name. Before a deletion it reads the workload past the cache: the cache of a
// new leader may show earlier annotations, and the records cannot be restored.
func (r *Reconciler) observeAskers(ctx context.Context, s *snapshot) error {
	var askers []*podstate.Asker
	for _, kind := range r.kinds.synced() {
		workload, err := r.workload(ctx, kind, s.name)
		if err != nil {
			return err
		}
		if workload == nil {
			continue
		}
		asker, malformed, err := stored.Decode[podstate.Asker](workload)
		if err := errors.Join(malformed, err); err != nil {
			return fmt.Errorf("decode metadata of %s: %w", kind.Kind, err)
		}
		askers = append(askers, asker)
	}
	s.generation = podstate.Generate(askers, s.state)
	if s.generation.Action != podstate.Delete {
		return nil
	}
	live, err := stored.Metadata(ctx, r.api.Live, s.generation.Asker.GroupVersionKind(), s.name)
	if err != nil {
		return err
	}
	if askers = nil; live != nil { // else garbage collection deletes the PersistentPodState
		askers = append(askers, live)
	}
	s.generation = podstate.Generate(askers, s.state)
	return nil
}

// workload reads a workload of a kind that is watched; nil where it does not exist.
func (r *Reconciler) workload(
	ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName,
) (*unstructured.Unstructured, error) {
	raw := stored.Untyped(kind)
	switch err := r.api.Cached.Get(ctx, name, raw, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", kind.Kind, err)
	}
	return raw, nil
}

// observeWorkload reads the workload of a PersistentPodState, its pods and their nodes.
func (r *Reconciler) observeWorkload(ctx context.Context, s *snapshot) error {
	target, ok := podstate.TargetOf(s.state)
	if !ok {
		s.unsupported = fmt.Sprintf("spec.targetRef.apiVersion %q is no group and version",
			s.state.Spec.TargetReference.APIVersion)
		return nil
	}
	kind, ok := r.kinds.synced()[target.GroupKind]
	if !ok {
		s.unsupported = fmt.Sprintf(textUnsupported, target.GroupKind)
		return nil
	}
	workload, err := r.workload(ctx, kind, types.NamespacedName{Namespace: s.name.Namespace, Name: target.Name})
	if err != nil {
		return err
	}
	s.input = podstate.Input{State: s.state, Now: r.api.Now()}
	if workload == nil || workload.GetDeletionTimestamp() != nil {
		s.input.Workload.Gone = true
		return nil
	}
	s.input.Workload = podstates.WorkloadOf(workload, r.options.StartOrdinal)
	if s.input.Pods, err = r.pods(ctx, s.name.Namespace, workload); err != nil {
		return err
	}
	return r.observeNodes(ctx, &s.input)
}

// pods lists the pods that a workload controls.
func (r *Reconciler) pods(ctx context.Context, namespace string, workload metav1.Object) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list,
		append(owned.In(namespace, workload.GetUID()), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return slices.DeleteFunc(stored.Pointers(list.Items), func(pod *corev1.Pod) bool {
		return !owned.Controls(workload, pod)
	}), nil
}

// observeNodes reads the nodes of pods and of records, and all nodes where the plan looks for others.
func (r *Reconciler) observeNodes(ctx context.Context, in *podstate.Input) error {
	names := map[string]bool{}
	for _, pod := range in.Pods {
		names[pod.Spec.NodeName] = true
	}
	for _, record := range in.State.Status.PodStates {
		names[record.NodeName] = true
	}
	delete(names, "")
	in.Nodes = map[string]*corev1.Node{}
	for name := range names {
		node := &corev1.Node{}
		err := r.api.Client.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read node: %w", err)
		}
		if err == nil {
			in.Nodes[name] = node
		}
	}
	if !podstate.NeedsAllNodes(in.State, in.Nodes) {
		return nil
	}
	var list corev1.NodeList
	if err := r.api.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range list.Items {
		in.Nodes[list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

package persistentpodstate

import (
	"context"
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
	// generation is what the workloads of the name ask for.
	generation podstate.Generation
	input      podstate.Input
	// nodes are those of pods and of records, by name, and allNodes all nodes, which only few plans need.
	nodes    map[string]*corev1.Node
	allNodes []*corev1.Node
	hasNodes bool
	// unsupported is why the records stay as they are.
	unsupported  string
	recheckAfter time.Duration
}

// observe reads the PersistentPodState of a name, the workloads that may ask for it, and the workload that its records
// are about.
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
	var askers []podstate.Asker
	for _, kind := range r.kinds.all() {
		workload, err := r.workload(ctx, kind, name)
		if err != nil {
			return nil, err
		}
		if workload != nil {
			askers = append(askers, podstate.Asker{Kind: kind, Metadata: metadataOf(workload)})
		}
	}
	s.generation = podstate.Generate(askers, s.state)
	if !s.hasRecords(s.generation.State) {
		return s, nil
	}
	return s, r.observeWorkload(ctx, s, s.generation.State)
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
func (r *Reconciler) workload(
	ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName,
) (*unstructured.Unstructured, error) {
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

func metadataOf(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         o.GetNamespace(),
		Name:              o.GetName(),
		UID:               o.GetUID(),
		Annotations:       o.GetAnnotations(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// observeWorkload reads the workload of a PersistentPodState, its pods and their nodes.
func (r *Reconciler) observeWorkload(ctx context.Context, s *snapshot, state *podstate.State) error {
	target, is := podstate.TargetOf(state)
	if !is {
		version := state.Spec.TargetReference.APIVersion
		s.unsupported = fmt.Sprintf("spec.targetRef.apiVersion %q is no group and version", version)
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
	s.input = podstate.Input{Now: r.api.Now()}
	if workload == nil || workload.GetDeletionTimestamp() != nil {
		s.input.Workload.Gone = true
		return nil
	}
	s.input.Workload = podstates.WorkloadOf(workload, r.options.StartOrdinal)
	if s.input.Pods, err = r.pods(ctx, s.name.Namespace, workload.GetUID()); err != nil {
		return err
	}
	if s.generation.Action != podstate.Nothing { // the API server may answer another spec than the plan has seen
		if err := r.observeAllNodes(ctx, s); err != nil {
			return err
		}
	}
	return r.observeNodes(ctx, s, state)
}

// recheck is when to look again at a kind that is not watched.
const recheck = time.Minute

// pods lists the pods that a workload controls.
func (r *Reconciler) pods(ctx context.Context, namespace string, workload types.UID) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list,
		append(owned.In(namespace, workload), client.UnsafeDisableDeepCopy)...); err != nil {
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

// observeNodes reads the nodes of pods and of records.
func (r *Reconciler) observeNodes(ctx context.Context, s *snapshot, state *podstate.State) error {
	s.nodes = map[string]*corev1.Node{}
	names := map[string]bool{}
	for _, pod := range s.input.Pods {
		names[pod.Spec.NodeName] = true
	}
	for _, record := range state.Status.PodStates {
		names[record.NodeName] = true
	}
	delete(names, "")
	for name := range names {
		node, err := stored.Find[corev1.Node](ctx, r.api.Client, types.NamespacedName{Name: name})
		if err != nil {
			return err
		}
		if node != nil {
			s.nodes[name] = node
		}
	}
	return nil
}

// observeAllNodes lists all nodes, for a plan that needs them.
func (r *Reconciler) observeAllNodes(ctx context.Context, s *snapshot) error {
	var list corev1.NodeList
	if err := r.api.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	s.allNodes, s.hasNodes = stored.Pointers(list.Items), true
	return nil
}

package persistentpodstate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/write"
)

// generate creates, updates or deletes the PersistentPodState that the workloads of the name ask for. The snapshot then has the answer of the API
// server.
func (r *Reconciler) generate(ctx context.Context, s *snapshot) error {
	g := podstate.Generate(s.askers, s.state)
	s.occupied(r, g.Action == podstate.Occupied)
	switch g.Action {
	case podstate.Create:
		return r.create(ctx, s, g.State)
	case podstate.Update:
		return r.update(ctx, s, g.State)
	case podstate.Delete:
		return r.delete(ctx, s)
	case podstate.Nothing, podstate.Occupied:
	}
	return nil
}

// occupied emits an event where a PersistentPodState stands in the way of the one that a workload asks for.
func (s *snapshot) occupied(r *Reconciler, is bool) {
	text := ""
	if is {
		text = "The workload asks for a PersistentPodState of this name, which the workload does not control; this one stays as it is"
	}
	if s.state != nil && r.emitted.Changed(about{s.name, reasonOccupied}, text) {
		r.api.Event(s.state, corev1.EventTypeWarning, reasonOccupied, text)
	}
}

func (r *Reconciler) create(ctx context.Context, s *snapshot, state *podstate.State) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(state)
	if err != nil {
		return fmt.Errorf("convert PersistentPodState: %w", err)
	}
	raw := &unstructured.Unstructured{Object: content}
	raw.SetGroupVersionKind(podstates.Kind())
	unstructured.RemoveNestedField(raw.Object, "status")
	switch err := r.api.Client.Create(ctx, raw); {
	case apierrors.IsAlreadyExists(err):
		return nil // its event brings the next pass
	case apierrors.IsInvalid(err):
		r.rejected(s, state, err)
		return reconcile.TerminalError(fmt.Errorf("create PersistentPodState: %w", err)) // a change of the workload, or of what stands in the way, brings the next pass
	case err != nil:
		r.states.Writes.Doubt(s.name, raw, err)
		return fmt.Errorf("create PersistentPodState: %w", err)
	}
	r.states.Writes.Created(s.name, raw)
	return s.decode(raw)
}

// rejected emits an event about a workload whose PersistentPodState the API server rejects.
func (r *Reconciler) rejected(s *snapshot, state *podstate.State, err error) {
	ref := metav1.GetControllerOfNoCopy(state)
	workload := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name.Namespace, Name: ref.Name, UID: ref.UID},
	}
	if text := "The API server rejects the PersistentPodState that the annotations ask for: " + failure.BriefText(err.Error()); r.emitted.Changed(about{s.name, reasonRejected}, text) {
		r.api.Event(workload, corev1.EventTypeWarning, reasonRejected, text)
	}
}

// update writes the spec and the annotations. A PersistentPodState that has changed since is a conflict.
func (r *Reconciler) update(ctx context.Context, s *snapshot, next *podstate.State) error {
	data, err := client.MergeFromWithOptions(s.state, client.MergeFromWithOptimisticLock{}).Data(next)
	if err != nil {
		return fmt.Errorf("compare PersistentPodState: %w", err)
	}
	answer := r.states.Named(s.name)
	err = r.api.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data))
	if apierrors.IsInvalid(err) {
		r.rejected(s, next, err) // the stored one stays in force
		return nil
	}
	if err != nil {
		return fmt.Errorf("update PersistentPodState: %w", err)
	}
	r.emitted.Forget(about{s.name, reasonRejected})
	r.states.Writes.Patched(s.name, answer)
	return s.decode(answer)
}

// delete deletes a PersistentPodState that the workload controls and no longer asks for.
func (r *Reconciler) delete(ctx context.Context, s *snapshot) error {
	uid := s.state.UID
	err := r.api.Client.Delete(ctx, r.states.Named(s.name), client.Preconditions{UID: &uid})
	if err != nil && !write.IsOutdated(err) {
		return fmt.Errorf("delete PersistentPodState: %w", err)
	}
	if err == nil {
		r.states.Writes.Deleted(s.name, s.latest.Object)
	}
	s.state = nil
	return nil
}

// deletePod deletes a pod that was observed. One that is gone is no error.
func (r *Reconciler) deletePod(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: uid}}
	if err := r.api.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); err != nil && !write.IsOutdated(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

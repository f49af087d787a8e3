package uniteddeployment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/subsets"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/spread"
)

// execute sends the writes of a pass: labels of pods, on which the allocation was decided, then workloads.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p *plan) {
	if s.invalid != nil {
		return
	}
	r.revise(ctx, s, p)
	if p.reviseErr != nil {
		p.provisionErr = p.reviseErr
		return
	}
	if _, p.provisionErr = batches.Each(p.labels, func(l spread.PodLabel) error { return r.label(ctx, l) }); p.provisionErr != nil {
		return
	}
	r.provision(ctx, s, p)
	_, p.updateErr = batches.Each(p.updates, func(t *target) error {
		if err := r.update(ctx, s, t); err != nil {
			return fmt.Errorf("update subset %s: %w", t.subset.Name, err)
		}
		return nil
	})
	_, err := batches.Each(p.evictions, func(pod *corev1.Pod) error {
		return client.IgnoreNotFound(r.api.Client.Delete(ctx, pod.DeepCopy(), client.Preconditions{UID: &pod.UID}))
	})
	p.updateErr = errors.Join(p.updateErr, err, r.trim(ctx, s, p))
	r.memory.Note(s.key(), func(k *knowledge) { k.labelled = p.labelled() })
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.notes)
	}
}

// labelled are the workloads of whose pods all have their label of reservation, and none is reserved.
func (p *plan) labelled() map[string]string {
	all := map[string]string{}
	for _, t := range p.targets {
		if t.child != nil && !t.condition.Unschedulable() && len(t.reserved.Labels) == 0 && counts(t.child) != "" {
			all[t.child.Object.GetName()] = counts(t.child)
		}
	}
	return all
}

func (r *Reconciler) revise(ctx context.Context, s *snapshot, p *plan) {
	if p.reviseErr != nil {
		return
	}
	newest, err := r.history.Ensure(ctx, s.key(), p.newest)
	s.revisions = history.Replace(s.revisions, newest)
	var taken *history.TakenError
	if errors.As(err, &taken) { // the next pass resolves another name
		n := int32(1)
		if c := p.resolution.Collisions; c != nil {
			n += *c
		}
		p.resolution.Collisions = &n
	}
	p.reviseErr = err
}

func (r *Reconciler) trim(ctx context.Context, s *snapshot, p *plan) error {
	live := []string{p.current, p.update}
	for _, child := range s.children {
		live = append(live, child.Revision)
	}
	return r.history.Delete(ctx, s.key(), revision.Trim(s.revisions, live, *s.object.Spec.RevisionHistoryLimit))
}

// label writes whether a pod is reserved.
func (r *Reconciler) label(ctx context.Context, l spread.PodLabel) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": l.Pod.UID, "labels": map[string]string{kruise.UnitedDeploymentReservedPodKey: l.Value()},
	}})
	if err != nil {
		return fmt.Errorf("encode label: %w", err)
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: l.Pod.Namespace, Name: l.Pod.Name}}
	target.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = r.api.Client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, data))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the pod is gone
	}
	if err != nil {
		return fmt.Errorf("label pod %s: %w", l.Pod.Name, err)
	}
	return nil
}

// provision creates the workloads that are missing, and deletes those that no subset has.
func (r *Reconciler) provision(ctx context.Context, s *snapshot, p *plan) {
	slices.SortFunc(p.creates, func(a, b *target) int { return cmp.Compare(a.subset.Name, b.subset.Name) })
	created, createErr := batches.Each(p.creates, func(t *target) error {
		if err := r.create(ctx, s, t); err != nil {
			return fmt.Errorf("create subset %s: %w", t.subset.Name, err)
		}
		return nil
	})
	deleted, deleteErr := batches.Each(p.deletes, func(c *subsets.Child) error { return r.delete(ctx, s, c) })
	p.provisionErr = errors.Join(createErr, deleteErr)
	r.emitProvisioned(s, created, deleted)
}

// attempts are the names that a workload may have: another owner may have taken the first ones.
const attempts = 3

// create creates the workload of a subset, if no other one has the name. A server-side apply would write to that.
func (r *Reconciler) create(ctx context.Context, s *snapshot, t *target) error {
	for attempt := range attempts {
		o := t.rendered.DeepCopy()
		o.SetName(subsets.Name(s.object, t.subset.Name, attempt))
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(o.GroupVersionKind())
		switch err := r.api.Live.Get(ctx, client.ObjectKeyFromObject(o), there); {
		case apierrors.IsNotFound(err):
			answer, err := r.apply(ctx, o)
			if err != nil {
				r.children[o.GroupVersionKind()].Doubt(s.key(), o, err)
				return err
			}
			r.children[o.GroupVersionKind()].Created(s.key(), answer)
			r.remember(s, t, answer)
			return nil
		case err != nil:
			return err
		case owned.Controls(s.object, there):
			r.children[o.GroupVersionKind()].Created(s.key(), there) // the answer to an earlier write was lost
			return nil
		}
	}
	return fmt.Errorf("the name %s and its alternatives belong to other objects", t.rendered.GetName())
}

// FieldManager is the name under which the reconciler applies workloads.
const FieldManager = "kruisekit-uniteddeployment"

// apply writes the fields of a rendered object, and takes them over from other managers.
func (r *Reconciler) apply(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode workload: %w", err)
	}
	answer := &unstructured.Unstructured{}
	answer.SetGroupVersionKind(o.GroupVersionKind())
	answer.SetNamespace(o.GetNamespace())
	answer.SetName(o.GetName())
	patch := client.RawPatch(types.ApplyPatchType, data)
	return answer, r.api.Client.Patch(ctx, answer, patch, client.FieldOwner(FieldManager), client.ForceOwnership)
}

// update writes the workload of a subset.
func (r *Reconciler) update(ctx context.Context, s *snapshot, t *target) error {
	o := t.rendered.DeepCopy()
	o.SetUID(t.child.Object.GetUID())
	if _, own := s.known.writes[o.GetName()]; !own {
		if err := r.inherit(ctx, o); err != nil {
			return err
		}
	}
	answer, err := r.apply(ctx, o)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the workload is gone, and an event announces that
	}
	if err != nil {
		return err
	}
	r.children[t.child.Kind].Patched(s.key(), answer)
	r.remember(s, t, answer)
	return nil
}

// remember keeps what was written.
func (r *Reconciler) remember(s *snapshot, t *target, answer *unstructured.Unstructured) {
	w := lastWrite{content: t.content, generation: answer.GetGeneration(), at: s.now, repeats: t.repeats}
	r.memory.Note(s.key(), func(k *knowledge) {
		writes := map[string]lastWrite{answer.GetName(): w}
		for _, child := range s.children {
			if known, is := k.writes[child.Object.GetName()]; is && child.Object.GetName() != answer.GetName() {
				writes[child.Object.GetName()] = known
			}
		}
		for _, other := range s.object.Spec.Topology.Subsets {
			for attempt := range attempts {
				name := subsets.Name(s.object, other.Name, attempt)
				if known, is := k.writes[name]; is && name != answer.GetName() {
					writes[name] = known
				}
			}
		}
		k.writes = writes
	})
}

func (r *Reconciler) delete(ctx context.Context, s *snapshot, c *subsets.Child) error {
	uid := c.Object.GetUID()
	err := r.api.Client.Delete(ctx, c.Object.DeepCopy(), client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s: %w", c.Kind.Kind, c.Object.GetName(), err)
	}
	r.children[c.Kind].Deleted(s.key(), c.Object)
	return nil
}

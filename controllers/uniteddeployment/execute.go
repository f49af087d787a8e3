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
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/spread"
	"github.com/kruisekit/kruisekit/write"
)

// execute sends the writes of a pass: labels of pods, on which the allocation was decided, then workloads.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p *subsets.Pass) (o subsets.Outcome) {
	if err := r.api.Run(ctx, s.key(), p.Store, r.revisions); err != nil {
		return subsets.Outcome{Revise: err}
	}
	s.Revisions = p.Store.Stored(s.Revisions)
	if _, err := batches.Each(p.Labels, func(l spread.PodLabel) error { return r.label(ctx, l) }); err != nil {
		return subsets.Outcome{Provision: err}
	}
	o.Provision = r.provision(ctx, s, p)
	_, updateErr := batches.Each(p.Updates, func(t *subsets.Target) error {
		if err := r.update(ctx, s, t); err != nil {
			return fmt.Errorf("update subset %s: %w", t.Subset.Name, err)
		}
		return nil
	})
	_, evictErr := batches.Each(p.Evictions, func(pod *corev1.Pod) error {
		return client.IgnoreNotFound(r.api.Client.Delete(ctx, pod.DeepCopy(), client.Preconditions{UID: &pod.UID}))
	})
	o.Update = errors.Join(updateErr, evictErr, r.trim(ctx, s, p))
	r.memory.Note(s.key(), func(k *subsets.Knowledge) { k.Labelled = p.Labelled() })
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.Notes)
	}
	return o
}

func (r *Reconciler) trim(ctx context.Context, s *snapshot, p *subsets.Pass) error {
	live := []string{p.Current, p.Update}
	for _, child := range s.Children {
		live = append(live, child.Revision)
	}
	surplus := revision.Trim(s.Revisions, live, *s.object.Spec.RevisionHistoryLimit)
	return r.api.Run(ctx, s.key(), driver.Writes(write.Deletions(surplus)...), r.revisions)
}

// label writes whether a pod is reserved.
func (r *Reconciler) label(ctx context.Context, l spread.PodLabel) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": l.Pod.UID, "labels": map[string]string{kruise.UnitedDeploymentReservedPodKey: l.Value()},
	}})
	if err != nil {
		return fmt.Errorf("encode label: %w", err)
	}
	target := stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), client.ObjectKeyFromObject(l.Pod))
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
func (r *Reconciler) provision(ctx context.Context, s *snapshot, p *subsets.Pass) error {
	slices.SortFunc(p.Creates, func(a, b *subsets.Target) int { return cmp.Compare(a.Subset.Name, b.Subset.Name) })
	created, createErr := batches.Each(p.Creates, func(t *subsets.Target) error {
		if err := r.create(ctx, s, t); err != nil {
			return fmt.Errorf("create subset %s: %w", t.Subset.Name, err)
		}
		return nil
	})
	deleted, deleteErr := batches.Each(p.Deletes, func(c *subsets.Child) error { return r.delete(ctx, s, c) })
	r.emitProvisioned(s, created, deleted)
	return errors.Join(createErr, deleteErr)
}

// attempts are the names that a workload may have: another owner may have taken the first ones.
const attempts = 3

// create creates the workload of a subset, if no other one has the name. A server-side apply would write to that.
func (r *Reconciler) create(ctx context.Context, s *snapshot, t *subsets.Target) error {
	writes := r.children[t.Rendered.GroupVersionKind()]
	for attempt := range attempts {
		o := t.Rendered.DeepCopy()
		o.SetName(subsets.Name(s.object, t.Subset.Name, attempt))
		there := stored.Untyped(o.GroupVersionKind())
		switch err := r.api.Live.Get(ctx, client.ObjectKeyFromObject(o), there); {
		case apierrors.IsNotFound(err):
			answer, err := r.applies.Apply(ctx, o)
			if err != nil {
				writes.Doubt(s.key(), o, err)
				return err
			}
			writes.Created(s.key(), answer)
			r.remember(s, t, answer)
			return nil
		case err != nil:
			return err
		case owned.Controls(s.object, there):
			writes.Created(s.key(), there) // the answer to an earlier write was lost
			return nil
		}
	}
	return fmt.Errorf("the name %s and its alternatives belong to other objects", t.Rendered.GetName())
}

// update writes the workload of a subset.
func (r *Reconciler) update(ctx context.Context, s *snapshot, t *subsets.Target) error {
	o, uid := t.Rendered.DeepCopy(), t.Child.Object.GetUID()
	o.SetUID(uid)
	if s.Known.Writes[t.Subset.Name].UID != uid {
		if err := r.applies.Inherit(ctx, o, uid); err != nil {
			return err
		}
	}
	answer, err := r.applies.Apply(ctx, o)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the workload is gone, and an event announces that
	}
	if err != nil {
		return err
	}
	r.children[t.Child.Kind].Patched(s.key(), answer)
	r.remember(s, t, answer)
	return nil
}

// remember keeps what was written, for the subsets that there are.
func (r *Reconciler) remember(s *snapshot, t *subsets.Target, answer *unstructured.Unstructured) {
	last := t.Write.Answered(answer.GetUID(), subsets.Lacking(answer, t.Rendered))
	r.memory.Note(s.key(), func(k *subsets.Knowledge) {
		writes := map[string]applied.Write{t.Subset.Name: last}
		for _, other := range s.object.Spec.Topology.Subsets {
			if known, is := k.Writes[other.Name]; is && other.Name != t.Subset.Name {
				writes[other.Name] = known
			}
		}
		k.Writes = writes
	})
}

func (r *Reconciler) delete(ctx context.Context, s *snapshot, c *subsets.Child) error {
	uid := c.Object.GetUID()
	err := r.api.Client.Delete(ctx, c.Object.DeepCopy(), client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s: %w", c.Kind.Kind, c.Object.GetName(), err)
	}
	r.children[c.Kind].Deleted(s.key(), c.Object)
	return nil
}

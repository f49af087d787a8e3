package resourcedistribution

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// execute runs the steps of all namespaces.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, pass *distribution.Pass) {
	steps := make([]*distribution.Step, len(pass.Steps))
	for i := range pass.Steps {
		steps[i] = &pass.Steps[i]
	}
	errs := batches.Isolated(steps, func(step *distribution.Step) error {
		for !step.Ended() && ctx.Err() == nil {
			live, err := r.send(ctx, s, *step)
			*step = pass.Answer(*step, live, err)
		}
		if step.Failure != nil {
			return step.Failure.Err
		}
		return ctx.Err()
	})
	for i, err := range errs {
		if err != nil && !steps[i].Ended() && ctx.Err() == nil { // a panic
			*steps[i] = pass.Answer(*steps[i], nil, err)
		}
	}
}

// send makes the request of a step, and records what the cache does not show yet.
func (r *Reconciler) send(ctx context.Context, s *snapshot, step distribution.Step) (distribution.Object, error) { //nolint:ireturn // a Secret or a ConfigMap
	resource, owner := s.input.Resource, s.input.Owner
	what := watched{kind: resource.Kind, name: resource.Name}
	key := what.in(step.Namespace)
	name := types.NamespacedName{Namespace: step.Namespace, Name: resource.Name}
	meta := stored.MetadataOf(what.kind, name)
	switch step.Action {
	case distribution.Create:
		made := resource.Copy(step.Namespace, owner)
		if err := r.api.Client.Create(ctx, made); err != nil {
			r.copies.Doubt(key, meta, err)
			return nil, err
		}
		r.copies.Created(key, lean(meta, made))
		return made, nil
	case distribution.Inspect:
		live := empty(what)
		if err := r.api.Live.Get(ctx, name, live); err != nil {
			return nil, err
		}
		return live, nil
	case distribution.Update:
		data, err := resource.Patch(step, owner)
		if err != nil {
			return nil, err
		}
		live := empty(what)
		live.SetNamespace(step.Namespace)
		live.SetName(resource.Name)
		if err := r.api.Client.Patch(ctx, live, client.RawPatch(distribution.PatchType, data)); err != nil {
			return nil, err
		}
		r.copies.Patched(key, lean(meta, live))
		return live, nil
	case distribution.Delete:
		if err := r.api.Client.Delete(ctx, meta, client.Preconditions{UID: &step.UID, ResourceVersion: &step.Version}); err != nil {
			return nil, err
		}
		meta.UID, meta.ResourceVersion = step.UID, step.Version
		r.copies.Deleted(key, meta)
		return nil, nil
	case distribution.Done:
	}
	return nil, fmt.Errorf("send step: unknown action %q", step.Action)
}

// empty is an object to read into.
func empty(what watched) client.Object {
	if what.kind.Kind == distribution.KindSecret {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

// lean fills metadata with what a pass looks at.
func lean(meta *metav1.PartialObjectMetadata, from metav1.Object) *metav1.PartialObjectMetadata {
	controller := metav1.GetControllerOf(from)
	meta.UID, meta.ResourceVersion, meta.DeletionTimestamp = from.GetUID(), from.GetResourceVersion(), from.GetDeletionTimestamp()
	meta.OwnerReferences = nil
	if controller != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return meta
}

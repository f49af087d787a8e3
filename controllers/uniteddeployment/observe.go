package uniteddeployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is all that one pass looks at.
type snapshot struct {
	*subsets.Snapshot

	// invalid is why nothing can be done with the spec. The snapshot then has the object alone.
	invalid      error
	recheckAfter time.Duration
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.Object) }

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.objects.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	if !latest.Cached {
		r.forget(name)
	}
	if latest.Object == nil || !latest.Cached || latest.Object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	object, malformed, err := stored.Decode[v1beta1.UnitedDeployment](latest.Object)
	if err != nil {
		return nil, err
	}
	s := &snapshot{recheckAfter: latest.RecheckAfter}
	if malformed != nil {
		s.Snapshot, s.invalid = &subsets.Snapshot{Object: object, Now: r.api.Now()}, malformed
		return s, nil //nolint:nilerr // the pass reports it
	}
	object.Default()
	s.Snapshot, s.invalid = subsets.Read(object, r.api.Now())
	if s.invalid == nil && r.children[s.Template.Kind].Writes == nil {
		s.invalid = fmt.Errorf("spec.template: the kind %s of %s is not installed",
			s.Template.Kind.Kind, s.Template.Kind.GroupVersion())
	}
	if s.invalid != nil {
		return s, nil //nolint:nilerr // the pass reports it
	}
	if err := r.observeChildren(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeRevisions(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observePods(ctx, s)
}

func (r *Reconciler) forget(name types.NamespacedName) {
	r.objects.Writes.Forget(name)
	r.revisions.Forget(name)
	for _, kind := range r.children {
		kind.Writes.Forget(name)
	}
	r.confirmed.Forget(name)
	r.emitted.Forget(name)
}

// observeChildren finds the workloads that the object controls.
func (r *Reconciler) observeChildren(ctx context.Context, s *snapshot) error {
	for gvk, kind := range r.children {
		cached, err := stored.List(ctx, r.api.Cached, gvk, owned.In(s.Object.Namespace, s.Object.UID)...)
		if err != nil {
			return err
		}
		workloads, recheckAfter, err := kind.Writes.Overlay(ctx, s.key(), cached)
		if err != nil {
			return fmt.Errorf("read %s: %w", gvk.Kind, err)
		}
		s.recheckAfter = passes.Sooner(s.recheckAfter, recheckAfter)
		s.Add(gvk, workloads)
	}
	return nil
}

func (r *Reconciler) observeRevisions(ctx context.Context, s *snapshot) error {
	var list appsv1.ControllerRevisionList
	options := append(owned.In(s.Object.Namespace, s.Object.UID), client.UnsafeDisableDeepCopy)
	if err := r.api.Client.List(ctx, &list, options...); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	all, recheckAfter, err := r.revisions.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err != nil {
		return fmt.Errorf("read revisions: %w", err)
	}
	s.recheckAfter = passes.Sooner(s.recheckAfter, recheckAfter)
	s.Revisions = slices.DeleteFunc(slices.Clone(all), func(rev *appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(rev, s.Object)
	})
	return nil
}

// observePods reads the pods of subsets about which the workload alone does not say enough.
func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	for subset, child := range s.Children {
		if !s.NeedsPods(child) {
			continue
		}
		var list corev1.PodList
		err := r.api.Client.List(ctx, &list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingFields{podField: subsetKey(s.Object.Name, subset)})
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		s.Pods[subset] = slices.DeleteFunc(stored.Pointers(list.Items), func(pod *corev1.Pod) bool {
			return !child.Owns(pod)
		})
	}
	return nil
}

package statefulset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	workloads.Observation

	// set with its defaults.
	set    *v1beta1.StatefulSet
	window ordinals.Window
	// claims of slots and of pods.
	claims claims.Named
	// held is why the set is left as it is; nil where it is not.
	held error
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, o, err := workloads.Read(ctx, r.kit, name, invalid)
	if set == nil {
		return nil, err
	}
	if o.Invalid != nil {
		return &snapshot{Observation: *o, set: set}, nil //nolint:nilerr // the pass refuses the set
	}
	window, err := r.options.window(set)
	if err != nil {
		return nil, err
	}
	if err := r.kit.Observe(ctx, o, set.Spec.Selector); err != nil {
		return nil, err
	}
	s := &snapshot{Observation: *o, set: set, window: window, claims: r.options.claimsOf(set)}
	if s.IsDeleted() {
		return s, nil
	}
	s.releaseMisnamed()
	if start := set.Spec.Ordinals; start != nil && !r.options.StartOrdinal {
		s.keepStarted(start.Start)
	}
	misplaced := s.ordinals(slices.Concat(s.Active, s.Inactive), func(ordinal int32) bool {
		return !window.Contains(ordinal)
	})
	names := slices.Concat(s.claims.Names(window.All()), s.claims.Names(misplaced))
	var recheckAfter time.Duration
	s.claims.Have, recheckAfter, err = r.kit.NamedClaims(ctx, name, names)
	if err != nil {
		return nil, err
	}
	s.RecheckAfter = passes.Sooner(s.RecheckAfter, recheckAfter)
	if !r.options.expands(set) {
		return s, nil
	}
	return s, s.claims.ReadClasses(ctx, r.kit.Client, s.ordinals(s.Active, nil))
}

// window is the ordinals that a set wants.
func (o Options) window(set *v1beta1.StatefulSet) (ordinals.Window, error) {
	reserved, err := ordinals.Parse(set.Spec.ReserveOrdinals)
	w := ordinals.Window{Replicas: *set.Spec.Replicas, Reserved: reserved}
	if o.StartOrdinal && set.Spec.Ordinals != nil {
		w.Start = set.Spec.Ordinals.Start
	}
	return w, err
}

// releaseMisnamed has pods released whose names are not those of pods of the set.
func (s *snapshot) releaseMisnamed() {
	misnamed := func(pod *corev1.Pod) bool { _, ok := s.ordinal(pod.Name); return !ok }
	for _, pods := range []*[]*corev1.Pod{&s.Active, &s.Inactive} {
		for _, pod := range *pods {
			if misnamed(pod) && pod.DeletionTimestamp == nil {
				s.Unselected = append(s.Unselected, pod)
				s.Taken[pod.Name] = true
			}
		}
		*pods = slices.DeleteFunc(*pods, misnamed)
	}
}

// keepStarted keeps the pods that spec.ordinals.start asks for where the gate is off, so that the set begins at 0: they
// would be surplus, and deleted with their claims. Such orphans are not adopted. A set whose pods begin at the start,
// as those that a process with the gate has created, is held as it is. One with pods below has begun at 0 all the time.
func (s *snapshot) keepStarted(start int32) {
	asked := s.window
	asked.Start = start
	unwanted := func(pod *corev1.Pod) bool {
		ordinal, _ := s.ordinal(pod.Name)
		return asked.Contains(ordinal) && !s.window.Contains(ordinal)
	}
	below := func(pod *corev1.Pod) bool { ordinal, _ := s.ordinal(pod.Name); return ordinal < start }
	own, orphans := slices.Concat(s.Active, s.Inactive), len(s.Orphans)
	s.Orphans = slices.DeleteFunc(s.Orphans, unwanted)
	kept := len(s.Orphans) < orphans
	why := fmt.Errorf("spec.ordinals.start: Invalid value: %d: the feature gate StatefulSetStartOrdinal is off, "+
		"so that the pods from this ordinal on are surplus; they are kept until the gate is on, or the field is removed",
		start)
	switch {
	case (kept || slices.ContainsFunc(own, unwanted)) && !slices.ContainsFunc(own, below):
		s.held = why
	case kept:
		s.Reported = errors.Join(s.Reported, why)
	}
}

// ordinal is that of a pod of the set, and reports whether a pod of this name can belong to the set.
func (s *snapshot) ordinal(pod string) (int32, bool) {
	set, ordinal, ok := ordinals.Split(pod)
	return ordinal, ok && set == s.set.Name
}

// ordinals are those of pods, as far as they are kept; nil keeps all.
func (s *snapshot) ordinals(pods []*corev1.Pod, keep func(ordinal int32) bool) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, pod := range pods {
			if ordinal, _ := s.ordinal(pod.Name); (keep == nil || keep(ordinal)) && !yield(ordinal) {
				return
			}
		}
	}
}

package statefulset

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/ordinals"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	workloads.Observation

	// set with its defaults.
	set    *v1beta1.StatefulSet
	window ordinals.Window
	// claims of slots and of pods, by name, those that terminate included.
	claims map[string]*corev1.PersistentVolumeClaim
	// classes are the storage classes of claims that are to grow.
	classes claims.Classes
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, o, err := workloads.Read(ctx, r.kit, name, invalid)
	if set == nil {
		return nil, err
	}
	o.Conditions = conditionsOf(&set.Status)
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
	s := &snapshot{Observation: *o, set: set, window: window}
	if s.IsDeleted() {
		return s, nil
	}
	s.releaseMisnamed()
	var recheckAfter time.Duration
	s.claims, recheckAfter, err = r.kit.NamedClaims(ctx, name, s.claimNames())
	if err != nil {
		return nil, err
	}
	s.RecheckAfter = requeue.Sooner(s.RecheckAfter, recheckAfter)
	return s, r.observeClasses(ctx, s)
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

// ordinal is that of a pod of the set, and reports whether a pod of this name can belong to the set.
func (s *snapshot) ordinal(pod string) (int32, bool) {
	set, ordinal, ok := ordinals.Split(pod)
	return ordinal, ok && set == s.set.Name
}

// wanted reports whether the set wants the ordinal of a pod.
func (s *snapshot) wanted(pod string) bool {
	ordinal, ok := s.ordinal(pod)
	return ok && s.window.Contains(ordinal)
}

// claimNames are the names of the claims of all slots and of all pods.
func (s *snapshot) claimNames() []string {
	templates := s.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 {
		return nil
	}
	var names []string
	add := func(ordinal int32) {
		for i := range templates {
			names = append(names, claims.Name(templates[i].Name, s.set.Name, strconv.Itoa(int(ordinal))))
		}
	}
	for ordinal := range s.window.All() {
		add(ordinal)
	}
	for _, pod := range slices.Concat(s.Active, s.Inactive) {
		if ordinal, _ := s.ordinal(pod.Name); !s.window.Contains(ordinal) {
			add(ordinal)
		}
	}
	return names
}

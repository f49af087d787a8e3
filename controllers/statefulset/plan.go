package statefulset

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// plan is what one pass of a set is to do. All of it follows from the snapshot.
type plan struct {
	*workloads.Plan

	rolling v1beta1.RollingUpdateStatefulSetStrategy
	limits  scale.Limits
}

// parts are what the pass has besides the revision and the pods.
func (o Options) parts(s *snapshot, p *plan) workloads.Parts {
	return workloads.Parts{
		PreDownload: func() workloads.Rollout { return p.preDownload(s, o) },
		Report:      func() workloads.Report { return s.report(p.status(s)) },
		Limit:       *s.set.Spec.RevisionHistoryLimit,
	}
}

// plan reads nothing but the snapshot and the options.
func (o Options) plan(s *snapshot) (*plan, error) {
	p := &plan{rolling: ptr.Deref(s.set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})}
	var err error
	p.Plan, err = s.Plan(workloads.Revision{
		Template: &s.set.Spec.Template, Current: s.set.Status.CurrentRevision, Collisions: s.set.Status.CollisionCount,
		Update: s.set.Status.UpdateRevision, ObservedGeneration: s.set.Status.ObservedGeneration,
	})
	if err != nil {
		return nil, err
	}
	p.limits = limits(s.set, &p.rolling)
	in := o.input(s, p)
	in.SetRevisions(p.Resolution, p.Revision(), s.Revisions)
	b := &identity{options: o, snapshot: s, plan: p, input: &in}
	in.Build = b.build
	if !s.IsDeleted() {
		p.Invalid = cmp.Or(s.held, s.selectorMismatch(&s.set.Spec.Template, p.Update))
	}
	p.NeedsObject = s.hasSurplus()
	p.Pass, err = workload.Plan(in)
	return p, err
}

// hasSurplus reports whether there is a pod that the set does not want. Its claims may be handed over to the pod, and
// the pod deleted.
func (s *snapshot) hasSurplus() bool {
	for range s.ordinals(slices.Concat(s.Active, s.Inactive), func(o int32) bool { return !s.window.Contains(o) }) {
		return true
	}
	return false
}

// input is the set as package workload looks at it.
func (o Options) input(s *snapshot, p *plan) workload.Input {
	spec := &s.set.Spec
	in := workload.Input{
		Scale: scale.Input{
			Now: s.Now, Limits: p.limits, MinReadySeconds: ptr.Deref(p.rolling.MinReadySeconds, 0), Hooks: spec.Lifecycle,
			PreparingUpdateIsUpdated: o.PreparingUpdateIsUpdated, UnavailableFirst: o.UnavailableFirst,
			Slots: s.slots(), InOrder: !isParallel(s.set),
		},
		Instances: workload.Pods(slices.Concat(s.Active, s.Inactive)),
		Strategy:  workload.Strategy(p.rolling.PodUpdatePolicy),
		Policy:    workloads.Policy(o.Installed),
		Ask:       o.Ask != nil,
		Repeats:   s.Known.Repeats,
		First:     s.firstWrites(),
		Before:    s.retain,
	}
	if in.Strategy != workload.InPlaceIfPossible && in.Strategy != workload.InPlaceOnly {
		in.Strategy = workload.Recreate
	}
	if strategy := p.rolling.InPlaceUpdateStrategy; strategy != nil {
		in.GraceSeconds = max(strategy.GracePeriodSeconds, 0)
	}
	if u := p.rolling.UnorderedUpdate; u != nil && isParallel(s.set) {
		in.Scale.Priority = ptr.To(ptr.Deref(u.PriorityStrategy, kruise.UpdatePriorityStrategy{}))
	}
	switch {
	case spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType:
		in.Scale.Updates = scale.UpdatesOnDelete
	case p.rolling.Paused:
		in.Scale.Updates = scale.UpdatesPaused
	}
	expand := o.expands(s.set)
	if expand {
		in.Ahead = func(pod *corev1.Pod) workload.Ahead {
			ordinal, _ := s.ordinal(pod.Name)
			return s.claims.Ahead(ordinal)
		}
	}
	s.compareClaims(p, &in, expand)
	return in
}

// slots are the names of the wanted pods, in the order of their ordinals.
func (s *snapshot) slots() []string {
	slots := make([]string, 0, min(max(s.window.Replicas, 0), maxReplicas))
	for ordinal := range s.window.All() {
		slots = append(slots, ordinals.Name(s.set.Name, ordinal))
	}
	return slots
}

func isParallel(set *v1beta1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

// limits resolves the bounds of the spec. One that cannot be parsed, which is reported, is as if it were not set.
func limits(set *v1beta1.StatefulSet, rolling *v1beta1.RollingUpdateStatefulSetStrategy) scale.Limits {
	amount := func(v *intstr.IntOrString, without int32) int32 {
		if n, err := scale.AmountOr(v, without, *set.Spec.Replicas, scale.RoundDown); err == nil {
			return max(n, 1)
		}
		return without
	}
	l := scale.Limits{Partition: max(ptr.Deref(rolling.Partition, 0), 0), MaxUnavailable: 1}
	if !isParallel(set) {
		return l
	}
	l.MaxUnavailable = amount(rolling.MaxUnavailable, 1)
	if strategy := set.Spec.ScaleStrategy; strategy != nil && strategy.MaxUnavailable != nil {
		l.MaxUnavailableScaling = ptr.To(amount(strategy.MaxUnavailable, math.MaxInt32))
	}
	return l
}

// preDownload is the rollout of the set, for which nodes pull images ahead.
func (p *plan) preDownload(s *snapshot, o Options) workloads.Rollout {
	r := s.Rollout(p.Plan)
	r.Selector, r.Replicas, r.To = s.set.Spec.Selector, *s.set.Spec.Replicas, &s.set.Spec.Template
	policy := p.rolling.PodUpdatePolicy
	inPlace := policy == v1beta1.InPlaceIfPossiblePodUpdateStrategyType ||
		policy == v1beta1.InPlaceOnlyPodUpdateStrategyType
	r.Recreates = !inPlace || s.set.Spec.UpdateStrategy.RollingUpdate == nil
	// the reference reads nothing but annotations
	r.Strategy = workloads.AnnotatedStrategy(p.rolling.InPlaceUpdateStrategy, s.set.Annotations, r.Replicas)
	r.Policy = workloads.Policy(o.Installed)
	if s.set.Status.UpdateRevision == p.Update {
		r.UpdatedReady = s.set.Status.UpdatedReadyReplicas
	}
	if p.limits.Partition == 0 && isParallel(s.set) && p.rolling.MaxUnavailable != nil {
		n, err := scale.AmountOr(p.rolling.MaxUnavailable, math.MaxInt32, r.Replicas, scale.RoundDown)
		r.AtOnce = err == nil && n >= r.Replicas
	}
	return r
}

// maxReplicas bounds the pods and claims of one set. A pass holds the name of each.
const maxReplicas = 100_000

// invalid returns the first faults for which the webhook rejects a set. With an unusable set nothing is done until its
// spec changes. A fault that is only reported has a safe reading.
func invalid(set *v1beta1.StatefulSet) (unusable, reported error) {
	replicas, each := ptr.Deref(set.Spec.Replicas, 1), int64(1+len(set.Spec.VolumeClaimTemplates))
	if limit := maxReplicas / each; int64(replicas) > limit {
		return fmt.Errorf("spec.replicas: Invalid value: %d: must be at most %d", replicas, limit), nil
	}
	return workloads.Judge(
		validation.StatefulSet(set),
		[]string{"spec.replicas", "spec.selector", "spec.template", "spec.reserveOrdinals"},
		[]string{"spec.template.spec.readinessGates"},
	)
}

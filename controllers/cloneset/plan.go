package cloneset

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// plan is what one pass means to do.
type plan struct {
	revision revision.Resolution
	// data of the update revision.
	data []byte
	// current and update are the names of the revisions that pods go from and to.
	current, update string
	rolling         v1beta1.RollingUpdateCloneSetStrategy
	partition       int32
	scale           scale.Plan
	// changes are in-place changes to the target, by the revision that pods have.
	changes map[string]change
}

// change is what leads from one revision to the target, or why nothing does.
type change struct {
	change  *inplace.Change
	blocked error
}

// plan decides. It reads nothing but the snapshot.
func (r *Reconciler) plan(s *snapshot) (*plan, error) {
	data, err := revision.Encode(&s.set.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	p := &plan{data: data, changes: map[string]change{}}
	p.revision = revision.Resolve(revision.Input{
		Owner: s.set.Name, Data: data, Have: s.revisions,
		Current: s.set.Status.CurrentRevision, Collisions: s.set.Status.CollisionCount,
	})
	p.update, p.current = p.revision.Name, p.revision.Name
	if p.revision.Current != nil {
		p.current = p.revision.Current.Name
	}
	if rolling := s.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		p.rolling = *rolling
	}
	if p.partition, err = scale.Partition(p.rolling.Partition, *s.set.Spec.Replicas); err != nil {
		p.partition = 0 // as if it were not there; admission says so to the user
	}
	p.scale, err = scale.Compute(r.scaleInput(s, p))
	return p, err
}

func (r *Reconciler) scaleInput(s *snapshot, p *plan) scale.Input {
	spec := &s.set.Spec
	in := scale.Input{
		Now: s.now, Limits: r.limits(s, p), MinReadySeconds: spec.MinReadySeconds, Hooks: spec.Lifecycle,
		PreparingUpdateIsUpdated: r.options.PreparingUpdateIsUpdated,
		Priority:                 p.rolling.PriorityStrategy, Scatter: p.rolling.ScatterStrategy, NodeLabels: s.nodes,
	}
	switch {
	case spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType:
		in.Updates = scale.UpdatesOnDelete
	case p.rolling.Paused:
		in.Updates = scale.UpdatesPaused
	}
	for _, c := range spec.Template.Spec.TopologySpreadConstraints {
		in.SpreadKeys = append(in.SpreadKeys, c.TopologyKey)
	}
	in.Instances = make([]scale.Instance, len(s.pods))
	for i, pod := range s.pods {
		in.Instances[i] = scale.Instance{
			Name: pod.Name, Pods: s.pods[i : i+1 : i+1],
			Updated: revision.Match(pod.Labels[pub.PodRevisionLabelKey], p.update), Doomed: isDoomed(s.set, pod),
		}
	}
	return in
}

// limits resolves the bounds. What cannot be read is as if it were not there.
func (r *Reconciler) limits(s *snapshot, p *plan) scale.Limits {
	replicas := *s.set.Spec.Replicas
	l := scale.Limits{
		Replicas: replicas, Partition: p.partition,
		NoRollback:    !r.options.PartitionRollback || p.current == p.update,
		ForgetLeaving: r.options.ExcludePreparingDelete || s.set.Spec.ScaleStrategy.ExcludePreparingDelete,
	}
	if !p.rolling.Paused {
		l.MaxSurge = max(amountOr(p.rolling.MaxSurge, 0, replicas, scale.Up), 0)
	}
	// With a surge the budget is rounded down, as for a set without a strategy.
	rounding := scale.Up
	if l.MaxSurge > 0 || s.set.Spec.UpdateStrategy.RollingUpdate == nil {
		rounding = scale.Down
	}
	unavailable := intstr.FromString("20%")
	if p.rolling.MaxUnavailable != nil {
		unavailable = *p.rolling.MaxUnavailable
	}
	l.MaxUnavailable = amountOr(&unavailable, 0, replicas, rounding)
	l.MaxUnavailableScaling = ptr.To(amountOr(s.set.Spec.ScaleStrategy.MaxUnavailable, math.MaxInt32, replicas, scale.Up))
	return l
}

func amountOr(v *intstr.IntOrString, without, total int32, rounding scale.Rounding) int32 {
	n, err := scale.AmountOr(v, without, total, rounding)
	if err != nil {
		return without
	}
	return n
}

func isDoomed(set *v1beta1.CloneSet, pod *corev1.Pod) bool {
	_, labelled := pod.Labels[pub.SpecifiedDeleteKey]
	return labelled || slices.Contains(set.Spec.ScaleStrategy.PodsToDelete, pod.Name)
}

// target is the revision that pods are moved to.
func (p *plan) target() string {
	if p.scale.Backward {
		return p.current
	}
	return p.update
}

// changeOf finds what leads a pod to the target, computing it once for each revision.
func (a *act) changeOf(pod *corev1.Pod) (*inplace.Change, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := revision.Short(pod.Labels[pub.PodRevisionLabelKey])
	if known, ok := a.plan.changes[from]; ok {
		return known.change, known.blocked
	}
	c := change{}
	c.change, c.blocked = a.diff(from)
	a.plan.changes[from] = c
	return c.change, c.blocked
}

func (a *act) diff(from string) (*inplace.Change, error) {
	old, target := a.stored(from), a.stored(a.plan.target())
	if old == nil {
		return nil, fmt.Errorf("the revision %q of the pod is not stored any more", from)
	}
	if target == nil {
		return nil, fmt.Errorf("the revision %s is not stored", a.plan.target())
	}
	only := a.plan.rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	if a.options.RecreateOnClaimChange && !only && claimsDiffer(old, target) {
		return nil, fmt.Errorf("spec.volumeClaimTemplates have changed")
	}
	before, err := revision.Decode(old.Data.Raw)
	if err != nil {
		return nil, err
	}
	after, err := revision.Decode(target.Data.Raw)
	if err != nil {
		return nil, err
	}
	return inplace.Diff(before, after, a.options.diffOptions())
}

// stored finds a revision by its name or hash.
func (s *snapshot) stored(name string) *appsv1.ControllerRevision {
	for _, rev := range s.revisions {
		if revision.Match(rev.Name, name) {
			return rev
		}
	}
	return nil
}

// claimsDiffer says whether two revisions were made with different claim templates. One that does not tell is equal.
func claimsDiffer(a, b *appsv1.ControllerRevision) bool {
	x, ok := a.Annotations[pub.CloneSetVolumeClaimTemplateHashKey]
	y, also := b.Annotations[pub.CloneSetVolumeClaimTemplateHashKey]
	return ok && also && x != y
}

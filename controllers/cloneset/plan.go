package cloneset

import (
	"errors"
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
	limits          scale.Limits
	scale           scale.Result
	// back are the names of the pods that go back from the update revision.
	back map[string]bool
	// unread says which bounds of the spec cannot be read, and are as if they were not there.
	unread error
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
	r.bound(s, p)
	next, err := scale.Plan(r.scaleInput(s, p))
	p.follow(next)
	return p, err
}

// follow takes up a plan of scaling.
func (p *plan) follow(next scale.Result) {
	p.scale, p.back = next, nil
	if !next.Backward {
		return
	}
	p.back = make(map[string]bool, len(next.Update))
	for i := range next.Update {
		p.back[next.Update[i].Name] = true
	}
}

func (r *Reconciler) scaleInput(s *snapshot, p *plan) scale.Input {
	spec := &s.set.Spec
	in := scale.Input{
		Now: s.now, Limits: p.limits, MinReadySeconds: spec.MinReadySeconds, Hooks: spec.Lifecycle,
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
			Updated: revision.Match(pod.Labels[pub.PodRevisionLabelKey], p.update), MarkedForDeletion: isDoomed(s.set, pod),
		}
	}
	return in
}

// bound resolves the bounds. One that cannot be read is as if it were not there, and the status says so.
func (r *Reconciler) bound(s *snapshot, p *plan) {
	replicas := *s.set.Spec.Replicas
	amount := func(field string, v *intstr.IntOrString, without int32, rounding scale.Rounding) int32 {
		n, err := scale.AmountOr(v, without, replicas, rounding)
		if err != nil {
			p.unread = errors.Join(p.unread, fmt.Errorf("%s: %w", field, err))
			return without
		}
		return n
	}
	l := scale.Limits{
		Replicas:               replicas,
		NoRollback:             !r.options.PartitionRollback || p.current == p.update,
		ExcludePreparingDelete: r.options.ExcludePreparingDelete || s.set.Spec.ScaleStrategy.ExcludePreparingDelete,
	}
	var err error
	if l.Partition, err = scale.Partition(p.rolling.Partition, replicas); err != nil {
		p.unread = errors.Join(p.unread, fmt.Errorf("partition: %w", err))
	}
	if !p.rolling.Paused {
		l.MaxSurge = max(amount("maxSurge", p.rolling.MaxSurge, 0, scale.RoundUp), 0)
	}
	// With a surge the budget is rounded down, as for a set without a strategy.
	rounding := scale.RoundUp
	if l.MaxSurge > 0 || s.set.Spec.UpdateStrategy.RollingUpdate == nil {
		rounding = scale.RoundDown
	}
	fifth := intstr.FromString("20%")
	l.MaxUnavailable = amount("maxUnavailable", &fifth, 0, rounding)
	if s.set.Spec.UpdateStrategy.RollingUpdate == nil {
		l.MaxUnavailable = max(l.MaxUnavailable, 1) // else none of a few pods could ever be chosen to go
	}
	if p.rolling.MaxUnavailable != nil {
		l.MaxUnavailable = amount("maxUnavailable", p.rolling.MaxUnavailable, l.MaxUnavailable, rounding)
	}
	if v := s.set.Spec.ScaleStrategy.MaxUnavailable; v != nil {
		l.MaxUnavailableScaling = ptr.To(amount("scaleStrategy.maxUnavailable", v, math.MaxInt32, scale.RoundUp))
	}
	p.limits = l
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
	c.change, c.blocked = a.diff(from, a.plan.target())
	a.plan.changes[from] = c
	return c.change, c.blocked
}

func (a *act) diff(from, to string) (*inplace.Change, error) {
	old, target := a.stored(from), a.stored(to)
	if old == nil {
		return nil, fmt.Errorf("the revision %q of the pod is not stored any more", from)
	}
	if target == nil {
		return nil, fmt.Errorf("the revision %s is not stored", to)
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
	return inplace.Diff(before, after, a.options.policy())
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

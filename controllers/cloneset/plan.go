package cloneset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what one pass of a set is to do. All of it follows from the snapshot.
type plan struct {
	resolution revision.Resolution
	// newest makes the template the newest revision.
	newest history.Change
	// current and update are the names of the revisions that pods go from and to.
	current, update string
	rolling         v1beta1.RollingUpdateCloneSetStrategy
	limits          scale.Limits
	pass            *workload.Pass
	// ids are those of the pods to create, once the pass has come to that.
	ids []string
	// deletesClaims means that the pass deletes claims whose pods are not observed.
	deletesClaims bool
	// invalid is why pods of the template cannot be managed.
	invalid error

	// What follows is known once the pass is executed.

	scaleErr, updateErr error
	after               requeue.Earliest
	wait                conditions.Wait
	// waits are what pods wait for that are to be created, once the pass has come to that.
	waits []note.Note
}

// plan reads nothing but the snapshot and the options.
func (o Options) plan(s *snapshot) (*plan, error) {
	data, err := revision.Encode(&s.set.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	p := &plan{rolling: ptr.Deref(s.set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})}
	p.after.In(s.RecheckAfter)
	p.resolution = revision.Resolve(revision.Input{
		Owner: s.set.Name, Data: data, Have: s.Revisions,
		Current: s.set.Status.CurrentRevision, Collisions: s.set.Status.CollisionCount,
	})
	p.update, p.current = p.resolution.Name, p.resolution.Name
	if p.resolution.Current != nil {
		p.current = p.resolution.Current.Name
	}
	hash, err := claims.Hash(s.set.Spec.VolumeClaimTemplates)
	if err != nil {
		return nil, err
	}
	p.newest, err = history.Plan(history.Wanted{
		Resolution: p.resolution, Namespace: s.set.Namespace, Owner: s.controllerRef(), Data: data,
		Labels: maps.Clone(s.set.Spec.Template.Labels), Annotations: maps.Clone(s.set.Annotations),
		RaisedAnnotations: map[string]string{kruise.CloneSetVolumeClaimTemplateHashKey: hash},
	})
	if err != nil {
		return nil, err
	}
	p.limits = o.limits(s.set, p)
	in := o.input(s, p)
	in.Update.Data = data
	if o.RecreateOnClaimChange && in.Strategy != workload.InPlaceOnly && p.resolution.Verdict != revision.Use {
		in.Update.Fixed = fixedPrefix + hash
	}
	if s.set.DeletionTimestamp == nil {
		p.invalid = s.selectorMismatch(&s.set.Spec.Template, p.update)
	}
	p.pass, err = workload.Plan(in)
	return p, err
}

// fixedPrefix makes the empty hash of a set without claim templates another one than that of a revision that does not record them.
const fixedPrefix = "claims:"

// runs reports whether the pass is executed. The pods of a set that is deleted are the garbage collector's.
func (p *plan) runs(s *snapshot) bool { return p.invalid == nil && s.set.DeletionTimestamp == nil }

// needsAllPods reports whether the pass would do harm where the cache lacks a pod: it would create the pod twice, or delete its claims.
func (p *plan) needsAllPods() bool { return len(p.pass.Creations()) > 0 || p.deletesClaims }

// notes are why the plan is as it is, and what pods wait for.
func (p *plan) notes() []note.Note { return append(p.pass.Notes(), p.waits...) }

// input is the set as package workload looks at it.
func (o Options) input(s *snapshot, p *plan) workload.Input {
	spec := &s.set.Spec
	first, kept := s.ownershipWrites()
	p.deletesClaims = slices.ContainsFunc(first, func(w write.Write) bool { return w.Verb == write.Delete })
	b := &identity{options: o, snapshot: s, plan: p, claims: s.pool(kept)}
	in := workload.Input{
		Scale: scale.Input{
			Now: s.now, Limits: p.limits, MinReadySeconds: spec.MinReadySeconds, Hooks: spec.Lifecycle,
			PreparingUpdateIsUpdated: o.PreparingUpdateIsUpdated,
			Priority:                 p.rolling.PriorityStrategy, Scatter: p.rolling.ScatterStrategy, NodeLabels: s.nodes,
		},
		Instances: workload.Pods(slices.Concat(s.Active, s.Inactive)),
		Strategy:  workload.Strategy(p.rolling.PodUpdatePolicy), Policy: o.policy(), NeedsNode: true, MayUpdate: o.MayUpdate, Ask: o.Ask != nil,
		Repeats: s.known.repeats,
		First:   first, Build: b.build, Owned: b.claimsOf,
		RevisionLabels: func(name string) map[string]string {
			return map[string]string{kruise.PodTemplateHashLabelKey: revision.Short(name)}
		},
	}
	if in.Strategy != workload.InPlaceIfPossible && in.Strategy != workload.InPlaceOnly {
		in.Strategy = workload.Recreate
	}
	if strategy := p.rolling.InPlaceUpdateStrategy; strategy != nil {
		in.GraceSeconds = strategy.GracePeriodSeconds
	}
	switch {
	case spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType:
		in.Scale.Updates = scale.UpdatesOnDelete
	case p.rolling.Paused:
		in.Scale.Updates = scale.UpdatesPaused
	}
	for _, c := range spec.Template.Spec.TopologySpreadConstraints {
		in.Scale.SpreadKeys = append(in.Scale.SpreadKeys, c.TopologyKey)
	}
	for i := range in.Instances {
		in.Instances[i].MarkedForDeletion = slices.Contains(spec.ScaleStrategy.PodsToDelete, in.Instances[i].Name)
	}
	of := func(rev *appsv1.ControllerRevision) workload.Revision {
		r := workload.Revision{Name: rev.Name, Label: o.revisionLabel(rev.Name), Data: rev.Data.Raw}
		if o.RecreateOnClaimChange && in.Strategy != workload.InPlaceOnly {
			if hash, recorded := rev.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey]; recorded {
				r.Fixed = fixedPrefix + hash
			}
		}
		return r
	}
	in.Update = workload.Revision{Name: p.update, Label: o.revisionLabel(p.update)}
	in.Current = in.Update
	for _, rev := range s.Revisions {
		in.Revisions = append(in.Revisions, of(rev))
		switch rev.Name {
		case p.update:
			in.Update = of(rev)
		case p.current:
			in.Current = of(rev)
		}
	}
	if p.current == p.update {
		in.Current = in.Update
	}
	return in
}

// limits resolves the bounds of the spec. One that cannot be parsed, which is reported, is as if it were not set.
func (o Options) limits(set *v1beta1.CloneSet, p *plan) scale.Limits {
	replicas := *set.Spec.Replicas
	amount := func(v *intstr.IntOrString, without int32, rounding scale.Rounding) int32 {
		if n, err := scale.AmountOr(v, without, replicas, rounding); err == nil {
			return n
		}
		return without
	}
	l := scale.Limits{
		Replicas:               replicas,
		NoRollback:             !o.PartitionRollback || p.current == p.update,
		ExcludePreparingDelete: o.ExcludePreparingDelete || set.Spec.ScaleStrategy.ExcludePreparingDelete,
	}
	l.Partition, _ = scale.Partition(p.rolling.Partition, replicas) // 0 with an error
	if !p.rolling.Paused {
		l.MaxSurge = max(amount(p.rolling.MaxSurge, 0, scale.RoundUp), 0)
	}
	// With a surge the budget is rounded down, as for a set without a strategy.
	rounding := scale.RoundUp
	if l.MaxSurge > 0 || set.Spec.UpdateStrategy.RollingUpdate == nil {
		rounding = scale.RoundDown
	}
	l.MaxUnavailable = amount(ptr.To(intstr.FromString("20%")), 0, rounding)
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		l.MaxUnavailable = max(l.MaxUnavailable, 1) // else none of a few pods could ever be chosen to go
	}
	l.MaxUnavailable = amount(p.rolling.MaxUnavailable, l.MaxUnavailable, rounding)
	if v := set.Spec.ScaleStrategy.MaxUnavailable; v != nil {
		if _, err := strconv.Atoi(v.StrVal); v.Type == intstr.String && err == nil {
			v = ptr.To(intstr.FromString(v.StrVal + "%")) // each text is a percentage, as in the reference
		}
		l.MaxUnavailableScaling = ptr.To(amount(v, math.MaxInt32, scale.RoundUp))
	}
	return l
}

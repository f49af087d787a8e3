package cloneset

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what one pass of a set is to do. All of it follows from the snapshot.
type plan struct {
	*workloads.Plan

	rolling v1beta1.RollingUpdateCloneSetStrategy
	limits  scale.Limits
	// creations is how many pods the pass is to create. ids are those of these pods, set when the pass creates them.
	creations int
	ids       []string
	// existing are the ids of pods that exist now.
	existing sync.Map
}

// plan reads nothing but the snapshot and the options.
func (o Options) plan(s *snapshot) (*plan, error) {
	hash, err := claims.Hash(s.set.Spec.VolumeClaimTemplates)
	if err != nil {
		return nil, err
	}
	p := &plan{rolling: ptr.Deref(s.set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})}
	p.Plan, err = s.Plan(workloads.Revision{
		Template: &s.set.Spec.Template, Current: s.set.Status.CurrentRevision, Collisions: s.set.Status.CollisionCount,
		Update: s.set.Status.UpdateRevision, ObservedGeneration: s.set.Status.ObservedGeneration,
		Raised: map[string]string{kruise.CloneSetVolumeClaimTemplateHashKey: hash},
	})
	if err != nil {
		return nil, err
	}
	p.limits = o.limits(s.set, p)
	in := o.input(s, p)
	in.Update.Data = p.Data
	if o.RecreateOnClaimChange && in.Strategy != workload.InPlaceOnly && p.Resolution.Verdict != revision.Use {
		in.Update.Fixed = fixedPrefix + hash
	}
	if !s.IsDeleted() {
		p.Invalid = s.selectorMismatch(&s.set.Spec.Template, p.Update)
	}
	if p.Pass, err = workload.Plan(in); err != nil {
		return nil, err
	}
	if p.creations = len(p.Pass.Creations()); p.creations == 0 && len(s.known.pending) > 0 && p.Runs(&s.Observation) {
		p.After.In(time.Millisecond) // their claims are not needed any more
	}
	p.NeedsPods = p.NeedsPods || p.creations > 0
	return p, nil
}

// fixedPrefix makes the empty hash of a set without claim templates another one than that of a revision that does not
// record them.
const fixedPrefix = "claims:"

// markNamed marks the pods that the set names for deletion.
func (s *snapshot) markNamed(pods []workload.Instance) {
	named := sets.New(s.set.Spec.ScaleStrategy.PodsToDelete...)
	for i := range pods {
		pods[i].MarkedForDeletion = named.Has(pods[i].Name)
	}
}

// needs records what the first writes rely on: they hand claims over, and delete those whose pods are not observed.
func (p *plan) needs(first []write.Write) {
	for i := range first {
		_, isClaim := first[i].Object.(*corev1.PersistentVolumeClaim)
		p.NeedsObject = p.NeedsObject || isClaim
		p.NeedsPods = p.NeedsPods || first[i].Verb == write.Delete
	}
}

// input is the set as package workload looks at it.
func (o Options) input(s *snapshot, p *plan) workload.Input {
	spec := &s.set.Spec
	first, kept := s.ownershipWrites()
	p.needs(first)
	b := &identity{options: o, snapshot: s, plan: p, claims: s.pool(kept)}
	in := workload.Input{
		Scale: scale.Input{
			Now: s.Now, Limits: p.limits, MinReadySeconds: spec.MinReadySeconds, Hooks: spec.Lifecycle,
			PreparingUpdateIsUpdated: o.PreparingUpdateIsUpdated,
			Priority:                 p.rolling.PriorityStrategy, Scatter: p.rolling.ScatterStrategy, NodeLabels: s.nodes,
		}, Instances: workload.Pods(slices.Concat(s.Active, s.Inactive)),
		Strategy: workload.Strategy(p.rolling.PodUpdatePolicy), Policy: o.policy(), NeedsNode: true,
		Ask: o.Ask != nil, Repeats: s.Known.Repeats, First: first, Build: b.build, Before: b.beforeDelete,
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
	s.markNamed(in.Instances)
	of := func(rev *appsv1.ControllerRevision) workload.Revision {
		r := workload.Revision{Name: rev.Name, Label: o.revisionLabel(rev.Name), Data: rev.Data.Raw}
		if o.RecreateOnClaimChange && in.Strategy != workload.InPlaceOnly {
			if hash, recorded := rev.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey]; recorded {
				r.Fixed = fixedPrefix + hash
			}
		}
		return r
	}
	in.Update = workload.Revision{Name: p.Update, Label: o.revisionLabel(p.Update)}
	in.Current = in.Update
	for _, rev := range s.Revisions {
		in.Revisions = append(in.Revisions, of(rev))
		switch rev.Name {
		case p.Update:
			in.Update = of(rev)
		case p.Current:
			in.Current = of(rev)
		}
	}
	if p.Current == p.Update {
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
		NoRollback:             !o.PartitionRollback || p.Current == p.Update,
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

// parts are what the pass has besides the revision and the pods.
func (o Options) parts(s *snapshot, p *plan) workloads.Parts {
	return workloads.Parts{
		PreDownload: func() workloads.Rollout { return p.preDownload(s, o) },
		Report:      func() workloads.Report { return s.report(p.status(s)) },
		Limit:       *s.set.Spec.RevisionHistoryLimit,
		Last:        func() []*write.Write { return p.trimNames(s) }, Answered: p.answered,
	}
}

// trimNames returns the write that removes names of pods to delete that are gone.
func (p *plan) trimNames(s *snapshot) []*write.Write {
	named, exists := s.set.Spec.ScaleStrategy.PodsToDelete, map[string]bool{}
	for _, pod := range p.Pass.Pods() {
		exists[pod.Name] = true
	}
	kept := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !exists[name] })
	if len(kept) == len(named) {
		return nil
	}
	const path = "/spec/scaleStrategy/podsToDelete"
	set := stored.Kind{GVK: gvk()}.Named(s.Key())
	return []*write.Write{write.JSON(set, write.Main, write.Test(path, named), write.Replace(path, kept))}
}

// answered records the pods that were created. A pod of the same name may be another owner's: its id is given up.
func (p *plan) answered(w *workload.Write, err error) {
	created := w.Action == workload.ActionCreate && w.Object == w.Pod
	if created && (err == nil || apierrors.IsAlreadyExists(err)) {
		p.existing.Store(w.Pod.Labels[kruise.CloneSetInstanceIDKey], true)
	}
}

// pending returns the ids of pods whose creation was planned and has not succeeded, and whether they are others than
// before. Where no pod is missing any more, their claims are not needed.
func (p *plan) pending(s *snapshot) (ids []string, changed bool) {
	switch {
	case !p.Runs(&s.Observation):
		return nil, false
	case p.creations == 0:
		return nil, len(s.known.pending) > 0
	case len(p.ids) == 0:
		return nil, false
	}
	ids = slices.DeleteFunc(slices.Concat(s.known.pending, p.ids), func(id string) bool {
		_, exists := p.existing.Load(id)
		return exists
	})
	slices.Sort(ids)
	return slices.Compact(ids), true
}

// preDownload is the rollout of the set, for which nodes pull images ahead.
func (p *plan) preDownload(s *snapshot, o Options) workloads.Rollout {
	policy := p.rolling.PodUpdatePolicy
	only := policy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	r := s.Rollout(p.Plan)
	r.Selector, r.Replicas, r.To = s.set.Spec.Selector, *s.set.Spec.Replicas, &s.set.Spec.Template
	r.Recreates = policy != v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType && !only
	r.Strategy, r.Policy = ptr.Deref(p.rolling.InPlaceUpdateStrategy, kruise.InPlaceUpdateStrategy{}), o.policy()
	if s.set.Status.UpdateRevision == p.Update {
		r.UpdatedReady = s.set.Status.UpdatedReadyReplicas
	}
	if o.RecreateOnClaimChange && !only && r.Current != nil && r.Update != nil {
		x, ok := r.Current.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey]
		y, also := r.Update.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey]
		r.Recreates = r.Recreates || ok && also && x != y
	}
	if p.limits.Partition == 0 && p.rolling.MaxUnavailable != nil {
		n, err := scale.AmountOr(p.rolling.MaxUnavailable, math.MaxInt32, r.Replicas, scale.RoundDown)
		r.AtOnce = err == nil && n >= r.Replicas
	}
	return r
}

// invalid returns the first faults for which the webhook rejects a set. With an unusable set nothing is done until its
// spec changes. A fault that is only reported has a safe reading, which limits and input give it: takeovers find stored
// values that the reference accepts.
func invalid(set *v1beta1.CloneSet) (unusable, reported error) {
	return workloads.Judge(validation.CloneSet(set), []string{"spec.replicas", "spec.selector", "spec.template"}, nil)
}

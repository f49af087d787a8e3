package daemonset

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what one pass of a set is to do. All of it follows from the snapshot.
type plan struct {
	*workloads.Plan

	rolling v1beta1.RollingUpdateDaemonSet
	// place is the set as package placement looks at it.
	place  placement.Input
	placed placement.Result
	// changes are the updates that are possible in place, by the hash that pods have.
	changes map[string]bool
	// names are those of the pods that the pass creates, by node.
	names map[string]string
	// moves are the writes that give pods the hash of the update revision.
	moves []write.Write
}

// plan reads nothing but the snapshot and the options.
func (o Options) plan(s *snapshot) (*plan, error) {
	p := &plan{
		rolling: ptr.Deref(s.set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateDaemonSet{}),
		changes: map[string]bool{}, names: map[string]string{},
	}
	var err error
	p.Plan, err = s.Plan(workloads.Revision{
		Template: &s.set.Spec.Template, Collisions: s.set.Status.CollisionCount,
		Update: s.observedRevision(), ObservedGeneration: s.set.Status.ObservedGeneration,
		HashLabel: kruise.PodRevisionLabelKey,
	})
	if err != nil {
		return nil, err
	}
	p.merge(s)
	p.placeNodes(s, o)
	in := o.input(s, p)
	b := &maker{options: o, snapshot: s, plan: p}
	in.Build = b.build
	if !s.IsDeleted() {
		p.Invalid = s.SelectorMismatch(b.labels(), p.Update)
	}
	if p.Pass, err = workload.Plan(in); err != nil {
		return nil, err
	}
	p.NeedsPods = len(p.Pass.Creations()) > 0 // the cache may lack pods that an earlier process has created
	if p.Runs(&s.Observation) {
		p.After.In(p.placed.RequeueAfter)
		p.Waits = append(p.Waits, p.placed.Notes...)
	}
	return p, nil
}

// placeNodes decides which pods the nodes have.
func (p *plan) placeNodes(s *snapshot, o Options) {
	spec := &s.set.Spec
	p.place = placement.Input{
		Now: s.Now, Nodes: s.nodes, Pods: s.pods(), Rule: s.rule, MinReadySeconds: spec.MinReadySeconds,
		IsUpdated: func(pod *corev1.Pod) bool { return p.isUpdated(s, pod) },
		Limits: placement.Limits{
			MaxUnavailable: p.rolling.MaxUnavailable,
			MaxSurge:       p.rolling.MaxSurge,
			Partition:      p.rolling.Partition,
			Burst:          spec.BurstReplicas,
		},
		Selector: s.updates, PartitionedScaling: spec.ScaleStrategy != nil && spec.ScaleStrategy.PartitionedScaling,
		Loose: o.LooseBudget, Backoff: s.known.backoff,
	}
	if hooks := hooksOf(s.set); hooks != nil {
		p.place.PreDelete = hooks.PreDelete
	}
	if p.isInPlace() {
		p.place.InPlace = func(pod *corev1.Pod) bool { return p.canChange(s, o, pod) }
	}
	switch {
	case spec.UpdateStrategy.Type != v1beta1.RollingUpdateDaemonSetStrategyType:
		p.place.Updates = scale.UpdatesOnDelete
		p.place.Limits.MaxSurge, p.place.Limits.Partition = nil, nil
	case ptr.Deref(p.rolling.Paused, false):
		p.place.Updates = scale.UpdatesPaused
	}
	p.placed = placement.Plan(p.place)
}

func (p *plan) isInPlace() bool { return p.rolling.Type == v1beta1.InplaceRollingUpdateType }

// isUpdated reports whether a pod has the update revision. The generation of exported manifests of built-in sets counts
// only for pods without a hash: it stays the same whatever the template.
func (p *plan) isUpdated(s *snapshot, pod *corev1.Pod) bool {
	if hash := pod.Labels[kruise.PodRevisionLabelKey]; hash != "" {
		return revision.Match(hash, p.Update)
	}
	generation, given := s.templateGeneration()
	return given && pod.Labels[kruise.DaemonSetTemplateGenerationKey] == generation
}

// templateGeneration is the generation of the template in an annotation of the set, if it is a number.
func (s *snapshot) templateGeneration() (string, bool) {
	n, err := strconv.ParseInt(s.set.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	return strconv.FormatInt(n, 10), err == nil
}

// canChange reports whether an update changes a running pod.
func (p *plan) canChange(s *snapshot, o Options, pod *corev1.Pod) bool {
	hash := pod.Labels[kruise.PodRevisionLabelKey]
	possible, known := p.changes[hash]
	if !known {
		possible = p.diff(s, o, hash)
		p.changes[hash] = possible
	}
	return possible && lifecycle.HasGate(pod, kruise.InPlaceUpdateReady)
}

// input is the set as package workload looks at it.
func (o Options) input(s *snapshot, p *plan) workload.Input {
	in := workload.Input{
		Scale: scale.Input{
			Now: s.Now, MinReadySeconds: s.set.Spec.MinReadySeconds, Hooks: hooksOf(s.set), Updates: p.place.Updates,
			Limits:   scale.Limits{Partition: p.placed.Partition, MaxUnavailable: p.placed.MaxUnavailable},
			Priority: &kruise.UpdatePriorityStrategy{}, UnavailableFirst: true, Slots: p.placed.Slots,
		},
		Policy:      workloads.Policy(o.Installed),
		MayUpdate:   mayUpdate(p.placed.Burst),
		Ask:         o.Ask != nil,
		Repeats:     s.Known.Repeats,
		KeepState:   true,
		IgnoreMarks: true,
	}
	if p.isInPlace() {
		in.Strategy = workload.InPlaceIfPossible
	}
	if in.Scale.Slots == nil {
		in.Scale.Slots = []string{}
	}
	of := func(rev *appsv1.ControllerRevision) workload.Revision {
		return workload.Revision{Name: rev.Name, Label: hashOf(rev), Data: rev.Data.Raw}
	}
	in.Update = of(p.Revision())
	in.Current = in.Update // a new pod always has the newest revision
	for _, rev := range s.Revisions {
		in.Revisions = append(in.Revisions, of(rev))
	}
	for _, i := range p.placed.Instances {
		recreate := !lifecycle.HasGate(i.Pod, kruise.InPlaceUpdateReady)
		notNow := i.NotNow || p.place.IsUpdated(i.Pod) && i.Pod.Labels[kruise.PodRevisionLabelKey] == ""
		in.Instances = append(in.Instances, workload.Instance{
			Name: i.Name, Pods: []workload.Pod{{Pod: i.Pod}}, NotNow: notNow, Recreate: recreate,
		})
	}
	in.First = slices.Concat(s.Ownership(), p.moves, p.holdFailed(s))
	return in
}

// holdFailed returns the writes after which pods that have failed wait for their preDelete hook, as other pods do.
func (p *plan) holdFailed(s *snapshot) []write.Write {
	var writes []write.Write
	for _, pod := range p.placed.Held {
		_, move := lifecycle.BeforeDelete(lifecycle.Situation{Pod: pod, Hooks: hooksOf(s.set)})
		if w, err := move.Next(pod, s.Now); err == nil && w != nil {
			writes = append(writes, *w)
		}
	}
	return writes
}

// mayUpdate bounds the updates that begin in a pass.
func mayUpdate(burst int32) func(*corev1.Pod) (bool, string) {
	return func(*corev1.Pod) (bool, string) {
		burst--
		return burst >= 0, "the pass has begun as many updates as burstReplicas allows"
	}
}

// hashOf is the value that pods of a revision have in their label.
func hashOf(rev *appsv1.ControllerRevision) string {
	if hash := rev.Labels[kruise.PodRevisionLabelKey]; hash != "" {
		return hash
	}
	return revision.Short(rev.Name)
}

// observedRevision returns the name of the update revision in the status, which has its hash.
func (s *snapshot) observedRevision() string {
	for _, rev := range s.Revisions {
		if hashOf(rev) == s.set.Status.UpdateRevision {
			return rev.Name
		}
	}
	return ""
}

// hooksOf are the hooks that this kind has.
func hooksOf(set *v1beta1.DaemonSet) *kruise.Lifecycle {
	if set.Spec.Lifecycle == nil {
		return nil
	}
	return &kruise.Lifecycle{PreDelete: set.Spec.Lifecycle.PreDelete}
}

// updatesOf selects the nodes whose pods are updated; nil for all. A selector that is invalid, which is reported,
// selects none.
func updatesOf(set *v1beta1.DaemonSet) labels.Selector {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Selector == nil ||
		set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(rolling.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// preDownload is the rollout of the set, for which nodes pull images ahead: from the revisions that pods have besides
// the update one. Pods that are recreated find the images, too, as in the reference, which never waits for updated
// pods.
func (p *plan) preDownload(s *snapshot, o Options) workloads.Rollout {
	r := s.Rollout(p.Plan)
	r.Selector, r.Replicas, r.To, r.Policy = s.set.Spec.Selector, p.placed.Desired, &s.set.Spec.Template,
		workloads.Policy(o.Installed)
	r.Strategy = workloads.AnnotatedStrategy(nil, s.set.Annotations, r.Replicas)
	r.Strategy.ImagePreDownloadMinUpdatedReadyPods = nil
	r.Always, r.AtOnce = true, p.placed.Partition == 0 && p.placed.MaxUnavailable >= p.placed.Desired
	r.Over, r.Current = true, nil
	for _, pod := range s.Active {
		if p.place.IsUpdated(pod) {
			continue
		}
		r.Over = false
		old := revision.Find(s.Revisions, pod.Labels[kruise.PodRevisionLabelKey])
		if old != nil && old.Name != p.Update && !slices.Contains(r.Older, old) {
			r.Older = append(r.Older, old)
		}
	}
	return r
}

// merge gives the hash of the update revision to the pods of revisions that hold its template under another name, as
// OpenKruise stores them after an upgrade of its libraries: the pods run what the set asks for. The plan looks at the
// pods as if they had the hash already.
func (p *plan) merge(s *snapshot) {
	update := p.Resolution.Update
	if update == nil || s.IsDeleted() {
		return
	}
	hash := hashOf(update)
	merged := map[string]bool{}
	for _, pod := range s.pods() {
		from := pod.Labels[kruise.PodRevisionLabelKey]
		if _, known := merged[from]; !known {
			merged[from] = from != hash && holds(s.Revisions, from, update)
		}
	}
	s.Active, s.Inactive = p.move(s.Active, merged, hash), p.move(s.Inactive, merged, hash)
}

// holds reports whether the revisions of a hash hold the template of the update revision. Users may write the label: of
// several revisions with one hash, all must hold the template.
func holds(all []*appsv1.ControllerRevision, hash string, update *appsv1.ControllerRevision) bool {
	found := false
	for _, rev := range all {
		if hashOf(rev) != hash {
			continue
		}
		if found = revision.SameData(rev.Data.Raw, update.Data.Raw); !found {
			return false
		}
	}
	return found
}

// move returns the pods as they are with the hash of the update revision.
func (p *plan) move(pods []*corev1.Pod, from map[string]bool, hash string) []*corev1.Pod {
	path := write.Pointer("metadata", "labels", kruise.PodRevisionLabelKey)
	pods = slices.Clone(pods)
	for i, pod := range pods {
		is := pod.Labels[kruise.PodRevisionLabelKey]
		if !from[is] {
			continue
		}
		p.moves = append(p.moves,
			*write.JSON(pod, write.Main, append(write.TestUID(pod), write.Test(path, is), write.Replace(path, hash))...))
		moved := *pod
		moved.Labels = maps.Clone(pod.Labels)
		moved.Labels[kruise.PodRevisionLabelKey] = hash
		pods[i] = &moved
	}
	return pods
}

// parts are what the pass has besides the revision and the pods.
func (o Options) parts(s *snapshot, p *plan) workloads.Parts {
	return workloads.Parts{
		PreDownload: func() workloads.Rollout { return p.preDownload(s, o) },
		Report:      func() workloads.Report { return s.report(p.status(s)) },
		Limit:       *s.set.Spec.RevisionHistoryLimit,
	}
}

// invalid returns the first faults for which the webhook rejects a set. With an unusable set nothing is done until its
// spec changes. A fault that is only reported has a safe reading: takeovers find stored values that the reference
// accepts.
func invalid(set *v1beta1.DaemonSet) (unusable, reported error) {
	return workloads.Judge(validation.DaemonSet(set), []string{"spec.selector", "spec.template"}, nil)
}

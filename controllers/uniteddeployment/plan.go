package uniteddeployment

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/subsets"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/ordinals"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/spread"
)

// plan is what one pass is to do. All of it follows from the snapshot.
type plan struct {
	after   requeue.Earliest
	targets []*target

	resolution revision.Resolution
	newest     history.Change
	// update and current are the names of revisions.
	update, current string

	labels  []spread.PodLabel
	creates []*target
	updates []*target
	deletes []*subsets.Child
	// evictions are pods of a StatefulSet that keep its update from going on.
	evictions []*corev1.Pod
	notes     []note.Note

	// reviseErr, provisionErr and updateErr are the errors of this pass.
	reviseErr, provisionErr, updateErr error
}

// target is a subset with what it is to be.
type target struct {
	subset *v1beta1.Subset
	// child is nil where there is no workload yet.
	child *subsets.Child

	replicas, partition int32
	condition           spread.Condition
	reserved            spread.Reserved
	unschedulable       bool

	rendered *unstructured.Unstructured
	// content identifies what was rendered, where it is to be written, and repeats counts the earlier writes of the same.
	content string
	repeats int
	err     error
}

// marked reports whether the subset was unschedulable before this pass.
func (s *snapshot) marked(subset string) bool { return s.conditionOf(subset).Unschedulable() }

// plan computes the pass.
func (s *snapshot) plan() *plan {
	p := &plan{}
	p.after.In(s.recheckAfter)
	if s.invalid != nil {
		return p
	}
	if p.reviseErr = s.revise(p); p.reviseErr != nil {
		return p
	}
	for i := range s.object.Spec.Topology.Subsets {
		subset := &s.object.Spec.Topology.Subsets[i]
		p.targets = append(p.targets, &target{subset: subset, child: s.children[subset.Name]})
	}
	for _, t := range p.targets {
		s.schedule(p, t)
	}
	s.allocate(p)
	for _, t := range p.targets {
		s.render(p, t)
		s.compare(p, t)
	}
	for _, child := range s.surplus {
		if !child.Terminating {
			p.deletes = append(p.deletes, child)
		}
	}
	return p
}

// revise makes the template the newest revision.
func (s *snapshot) revise(p *plan) error {
	data, err := subsets.Encode(&s.object.Spec.Template)
	if err != nil {
		return err
	}
	p.resolution = revision.Resolve(revision.Input{
		Owner: s.object.Name, Data: data, Have: s.revisions, Current: s.object.Status.CurrentRevision, Collisions: s.object.Status.CollisionCount,
		Same: subsets.SameData,
	})
	p.update, p.current = p.resolution.Name, p.resolution.Name
	if c := p.resolution.Current; c != nil {
		p.current = c.Name
	}
	p.newest, err = history.Plan(history.Wanted{
		Resolution: p.resolution, Namespace: s.object.Namespace, Owner: *metav1.NewControllerRef(s.object, gvk()), Data: data,
		Same: subsets.SameData, Labels: s.template.Labels(),
	})
	return err
}

// schedule decides whether a subset is schedulable, and which of its pods are reserved.
func (s *snapshot) schedule(p *plan, t *target) {
	state := spread.State{Condition: s.conditionOf(t.subset.Name), Pods: s.pods[t.subset.Name]}
	switch {
	case s.mode == spread.Fixed:
		return
	case s.mode == spread.Adaptive && t.child == nil:
		t.condition = state.Condition
	case s.mode == spread.Adaptive:
		v := spread.Schedule(state, s.windows, s.now)
		t.condition, t.unschedulable = v.Condition, v.Unschedulable
		p.after.In(v.RecheckAfter)
	default:
		t.reserved = spread.Reserve(spread.Reservation{
			State: state, Revision: p.update, UpdatingSince: s.updatingSince(p),
			Partition: spread.Partition(s.partitions(), t.subset.Name, replicasOf(t.child)),
		}, s.windows, s.now)
		t.condition, t.unschedulable = t.reserved.Condition, t.reserved.Unschedulable
		p.labels = append(p.labels, t.reserved.Labels...)
		p.after.In(t.reserved.RecheckAfter)
	}
}

// updatingSince is when the update began; zero without one.
func (s *snapshot) updatingSince(p *plan) time.Time {
	if p.current == p.update {
		return time.Time{}
	}
	if c := conditionsOf(&s.object.Status).Find(string(v1beta1.UnitedDeploymentUpdated)); c != nil && c.Status == corev1.ConditionFalse {
		return c.LastTransitionTime.Time
	}
	return s.now
}

func (s *snapshot) partitions() map[string]int32 {
	if manual := s.object.Spec.UpdateStrategy.ManualUpdate; manual != nil {
		return manual.Partitions
	}
	return nil
}

func replicasOf(child *subsets.Child) int32 {
	if child == nil {
		return 0
	}
	return child.Replicas
}

// allocate divides the replicas.
func (s *snapshot) allocate(p *plan) {
	in := spread.Input{Replicas: s.object.Spec.Replicas, Mode: s.mode}
	for _, t := range p.targets {
		subset := spread.Subset{
			Name: t.subset.Name, Replicas: t.subset.Replicas, MinReplicas: t.subset.MinReplicas, MaxReplicas: t.subset.MaxReplicas,
			Unschedulable: t.unschedulable, Marked: s.marked(t.subset.Name), Reserved: t.reserved.Pods,
		}
		if t.child != nil {
			subset.Exists, subset.Current, subset.Ready = true, t.child.Replicas, t.child.Ready
		}
		in.Subsets = append(in.Subsets, subset)
	}
	allocation := spread.Allocate(in)
	p.notes = allocation.Notes
	for i, t := range p.targets {
		t.replicas = allocation.Replicas[i]
		t.partition = spread.Partition(s.partitions(), t.subset.Name, t.replicas)
		if s.mode == spread.Reserving {
			t.condition = t.reserved.Grow(s.marked(t.subset.Name), replicasOf(t.child), t.replicas, s.now)
		}
	}
}

// render makes the workload of a subset.
func (s *snapshot) render(p *plan, t *target) {
	w := subsets.Wanted{
		Owner: s.object, Subset: t.subset, Revision: p.update, Replicas: t.replicas, Partition: t.partition,
		Name: subsets.Name(s.object, t.subset.Name, 0), MaxUnavailable: t.allowance(p.update),
	}
	if t.child != nil {
		w.Name = t.child.Object.GetName()
	}
	t.rendered, t.err = s.template.Render(w)
}

// allowance is how many pods of a subset may be unavailable during its update, where pods that find no node would otherwise take up the
// budget; nil for what the template says. It never falls during an update.
func (t *target) allowance(update string) *int32 {
	c := t.child
	if !t.reserved.Unschedulable || c == nil || c.Revision == update && c.Observed && c.Updated >= c.Pods-c.Partition {
		return nil
	}
	allowance := max(0, c.Replicas-c.Ready) + t.reserved.Overdue
	if c.Revision == update {
		allowance = max(allowance, c.MaxUnavailable())
	}
	return &allowance
}

// raised reports whether the workload still has the allowance of an earlier update. Defaults are percentages.
func (t *target) raised() bool {
	return t.child.MaxUnavailable() > 0 && subsets.Observe(t.child.Kind, t.rendered).MaxUnavailable() == 0
}

func fingerprint(o *unstructured.Unstructured) (string, error) {
	n, err := revision.Fingerprint(o.Object)
	return strconv.FormatUint(uint64(n), 36), err
}

// compare decides what is to be written for a subset.
func (s *snapshot) compare(p *plan, t *target) {
	c := t.child
	switch {
	case c != nil && c.Terminating, t.err != nil:
		return
	case c == nil:
		p.creates = append(p.creates, t)
		return
	}
	p.evictions = append(p.evictions, s.stuck(p, t)...)
	if subsets.Covers(c.Object, t.rendered) && (s.mode != spread.Reserving || !t.raised()) {
		return
	}
	if t.content, t.err = fingerprint(t.rendered); t.err != nil {
		return
	}
	last, written := s.known.writes[c.Object.GetName()]
	if written && last.content == t.content {
		if last.generation == c.Object.GetGeneration() {
			return // an admission webhook has changed what was written
		}
		const longest = 5 * time.Minute
		if rest := last.at.Add(min(time.Second<<min(last.repeats, 10), longest)).Sub(s.now); rest > 0 {
			p.after.In(rest)
			return
		}
		t.repeats = last.repeats + 1
	}
	p.updates = append(p.updates, t)
}

// stuck are pods of a StatefulSet that are to be updated and are not ready: those of an ordered update would keep it from going on for ever.
func (s *snapshot) stuck(p *plan, t *target) []*corev1.Pod {
	if !t.child.Stuck() || t.child.Revision != p.update {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.pods[t.subset.Name]), func(pod *corev1.Pod) bool {
		_, ordinal, ok := ordinals.Split(pod.Name)
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		return !ok || ordinal < t.partition || ready || pod.DeletionTimestamp != nil || pod.Labels[kruise.ControllerRevisionHashLabelKey] == p.update
	})
}

// fault is what of the spec cannot be met; nil for nothing.
func (p *plan) fault(s *snapshot) error {
	if s.invalid != nil {
		return s.invalid
	}
	var texts []string
	for _, n := range p.notes {
		texts = append(texts, n.Message())
	}
	for _, t := range p.targets {
		if t.err != nil {
			texts = append(texts, t.subset.Name+": "+t.err.Error())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

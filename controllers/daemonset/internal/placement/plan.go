package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// planner makes one plan.
type planner struct {
	in     *Input
	result Result
	// places are the nodes that are eligible or have a pod, by name.
	places []*place
	// deletions and creations count those of the plan, waiting those that the burst keeps.
	deletions, creations, waitingDeletions, waitingCreations, waitingPartition int
	// withheld is how many slots are left out although they lack an available pod, stray how many slots without one are
	// not of eligible nodes.
	withheld, stray int32
	// strayOld is how many slots with an old pod that is not updated are not of eligible nodes.
	strayOld int32
}

// place is a node with what it has.
type place struct {
	name    string
	node    *corev1.Node
	verdict eligible.Verdict
	// active pods are neither terminating nor finished, the oldest first.
	active []*corev1.Pod
	// leaving pods terminate or have succeeded, failed ones have failed.
	leaving, failed []*corev1.Pod

	// keep is the pod in the slot of the node, fresh the new one next to an old one.
	keep, fresh *corev1.Pod
	// held means that the node gets no pod now, occupied that a pod that is about to go has its slot.
	held, occupied bool
}

// Plan decides about all nodes.
func Plan(in Input) Result {
	p := &planner{in: &in}
	p.group()
	p.resolve()
	for _, at := range p.places {
		p.settle(at)
	}
	p.occupy()
	p.create()
	p.update()
	p.budget()
	p.conclude()
	return p.result
}

// group sorts the pods to their nodes.
func (p *planner) group() {
	places := make(map[string]*place, len(p.in.Nodes))
	all := make([]place, 0, len(p.in.Nodes)+1)
	for _, node := range p.in.Nodes {
		all = append(all, place{name: node.Name, node: node, verdict: p.in.Rule.Check(node)})
		places[node.Name] = &all[len(all)-1]
		if all[len(all)-1].verdict.Run {
			p.result.Desired++
		}
	}
	for _, pod := range p.in.Pods {
		name := eligible.NodeOf(pod)
		at := places[name]
		switch {
		case name == "" || at == nil && pod.Spec.NodeName != "":
			continue // the garbage collector deletes pods of nodes that are gone
		case at == nil:
			at = &place{name: name}
			places[name] = at
		}
		at.add(pod)
	}
	for _, at := range places {
		if at.verdict.Run || len(at.active)+len(at.leaving)+len(at.failed) > 0 {
			for _, pods := range [][]*corev1.Pod{at.active, at.leaving, at.failed} {
				slices.SortFunc(pods, Older)
			}
			p.places = append(p.places, at)
		}
	}
	slices.SortFunc(p.places, func(a, b *place) int { return strings.Compare(a.name, b.name) })
}

func (at *place) add(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		at.leaving = append(at.leaving, pod)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		at.failed = append(at.failed, pod)
	default:
		at.active = append(at.active, pod)
	}
}

// Older compares two pods of a node: one that is on the node comes before one that waits for the scheduler, then the
// older one, then by name.
func Older(a, b *corev1.Pod) int {
	unscheduled := func(pod *corev1.Pod) int {
		if pod.Spec.NodeName == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(unscheduled(a), unscheduled(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name))
}

// resolve computes the bounds for the nodes that are eligible.
func (p *planner) resolve() {
	r, l := &p.result, &p.in.Limits
	unavailable := amount(l.MaxUnavailable, 0, r.Desired, scale.RoundUp)
	r.Surge = amount(l.MaxSurge, 0, r.Desired, scale.RoundUp)
	if unavailable == 0 && r.Surge == 0 && r.Desired > 0 {
		unavailable = 1
	}
	r.MaxUnavailable = unavailable
	r.Partition = min(amount(l.Partition, 0, r.Desired, scale.RoundDown), r.Desired)
	r.Burst = max(amount(l.Burst, DefaultBurst, r.Desired, scale.RoundDown), 1)
}

// settle decides which pods of a node stay.
func (p *planner) settle(at *place) {
	if at.node == nil || !at.verdict.Stay {
		for _, pod := range slices.Concat(at.active, at.failed) {
			if at.node == nil {
				p.delete(at, pod, NoteNodeGone, "the node "+at.name+" does not exist")
			} else {
				p.delete(at, pod, NoteNotEligible, at.name+": "+at.verdict.Note("").Text)
			}
		}
		at.active, at.failed, at.held = nil, nil, true
		return
	}
	p.settleFailed(at)
	staying := at.active
	// A pod that a hook holds before its deletion stays only where the node has no other.
	if i := slices.IndexFunc(staying, isStaying); i >= 0 {
		for _, pod := range staying {
			if !isStaying(pod) {
				p.surplus(at, pod)
			}
		}
		staying = slices.DeleteFunc(slices.Clone(staying), func(pod *corev1.Pod) bool { return !isStaying(pod) })
	}
	if len(staying) == 0 {
		return
	}
	var replaced *corev1.Pod
	if p.result.Surge == 0 {
		at.keep = staying[0]
	} else {
		replaced = p.pair(at, staying)
	}
	for _, pod := range staying {
		if pod != at.keep && pod != at.fresh && pod != replaced {
			p.delete(at, pod, NoteDuplicate, at.name+" has an older one")
		}
	}
}

// pair selects the old and the new pod of a node with a surge. It returns the old one where that is surplus now.
func (p *planner) pair(at *place, pods []*corev1.Pod) (replaced *corev1.Pod) {
	old := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return !p.in.IsUpdated(pod) })
	fresh := slices.IndexFunc(pods, p.in.IsUpdated)
	switch {
	case old < 0:
		at.keep = pods[fresh]
		return nil
	case fresh < 0:
		at.keep = pods[old]
		return nil
	}
	at.keep, at.fresh = pods[old], pods[fresh]
	serves, wait := scale.Available(at.fresh, p.in.MinReadySeconds, p.in.Now)
	p.wake(wait)
	var why string
	switch {
	case serves:
		why = "the new pod " + at.fresh.Name + " is available"
	case isStaying(at.keep) && isReady(at.keep):
		return nil
	default:
		why = "it is not ready, and " + at.fresh.Name + " replaces it"
	}
	if p.delete(at, at.keep, NoteReplaced, why) {
		replaced, at.keep, at.fresh = at.keep, at.fresh, nil
	}
	return replaced
}

// settleFailed deletes the pods of a node that have failed, unless the last one failed a moment ago.
func (p *planner) settleFailed(at *place) {
	for _, pod := range at.failed {
		if wait := p.in.Backoff.wait(at.name, p.in.Now); wait > 0 {
			at.held = true
			p.wake(wait)
			p.note(note.Waiting, NoteBackoff, pod.Name, at.name+": it failed, as its predecessors, and is deleted later")
			continue
		}
		if !p.mayDelete() {
			at.held = true
			continue
		}
		if at.occupied = len(at.active) == 0 && p.result.Surge == 0; at.occupied {
			p.result.Instances = append(p.result.Instances, Instance{Name: at.name, Pod: pod})
		} else {
			p.surplus(at, pod)
		}
		p.note(note.Info, NoteFailed, pod.Name, at.name+": it failed")
		if lifecycle.HasAny(pod, p.in.PreDelete) {
			p.result.Held = append(p.result.Held, pod)
		} else {
			p.result.Failed = append(p.result.Failed, pod)
		}
		break // one at a time holds the slot
	}
}

// delete makes a pod surplus, unless the pass has enough deletions.
func (p *planner) delete(at *place, pod *corev1.Pod, code, why string) bool {
	if isStaying(pod) && !p.mayDelete() {
		return false
	}
	p.surplus(at, pod)
	p.note(note.Info, code, pod.Name, why)
	return true
}

// surplus lists a pod without a slot.
func (p *planner) surplus(at *place, pod *corev1.Pod) {
	p.result.Instances = append(p.result.Instances, Instance{Name: at.name + "/" + pod.Name, Pod: pod})
}

func (p *planner) mayDelete() bool {
	if p.deletions >= int(p.result.Burst) {
		p.waitingDeletions++
		return false
	}
	p.deletions++
	return true
}

// occupy has pods that terminate hold the slots of their nodes: without a surge, the next pod is created when they are
// gone.
func (p *planner) occupy() {
	for _, at := range p.places {
		if at.verdict.Run && at.keep == nil && !at.held && !at.occupied && p.result.Surge == 0 && len(at.leaving) > 0 {
			at.occupied = true
			p.result.Instances = append(p.result.Instances, Instance{Name: at.name, Pod: at.leaving[0]})
		}
	}
}

// isStaying reports whether no hook holds a pod before its deletion.
func isStaying(pod *corev1.Pod) bool {
	return lifecycle.StateOf(pod) != kruise.LifecycleStatePreparingDelete
}

func isReady(pod *corev1.Pod) bool {
	c := lifecycle.ConditionOf(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func (p *planner) note(level note.Level, code, object, text string) {
	p.result.Notes = append(p.result.Notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

func (p *planner) noteCount(code string, n int, text string) {
	if n > 0 {
		p.note(note.Waiting, code, "", fmt.Sprintf("%d wait %s", n, text))
	}
}

// isSelected reports whether the pods of a node are updated.
func (p *planner) isSelected(node *corev1.Node) bool {
	return p.in.Selector == nil || p.in.Selector.Matches(labels.Set(node.Labels))
}

package inplace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// recheck is how long a pod waits for its node before the next look, if no event of the pod comes first.
const recheck = 10 * time.Minute

// step continues an update that has begun.
func (l look) step() (Action, error) {
	pod := l.pod
	if pod.DeletionTimestamp != nil || finished(pod) {
		return Action{Verdict: Ignore}, nil
	}
	grace, err := GraceOf(pod, l.policy.Keys)
	if err != nil {
		return Action{}, err
	}
	if grace != nil {
		return l.endGrace(grace)
	}
	if hasGrace(pod, l.policy.Keys) { // of an empty text, with which the update would never be complete
		return l.patch(StepGrace, func() ([]write.Op, error) { return l.edit().encode(), nil }), nil
	}
	state, err := underWay(pod, l.policy.Keys)
	if err != nil {
		return Action{}, err
	}
	if waits := incomplete(pod, state, l.policy); waits.code != "" {
		return wait(recheck, waits.of(pod)), nil
	}
	if hasMore(state) {
		return l.nextBatch(state)
	}
	return l.makeReady(), nil
}

func wait(after time.Duration, why note.Note) Action {
	return Action{Verdict: Wait, After: after, Notes: []note.Note{why}}
}

// endGrace waits for the end of the grace period, and then writes the change.
func (l look) endGrace(g *kruise.InPlaceUpdateGrace) (Action, error) {
	s, err := StateOf(l.pod, l.policy.Keys)
	if err != nil {
		return Action{}, err
	}
	if s == nil {
		return Action{}, unreadable(l.policy.Keys.InPlaceStateKey(), errors.New("is missing in the grace period"))
	}
	c, err := l.planned(g)
	if err != nil {
		return Action{}, err
	}
	if !revision.Match(RevisionOf(l.pod, l.policy), g.Revision) {
		// The pod has got another revision meanwhile.
		return l.patch(StepGrace, func() ([]write.Op, error) { return l.edit().encode(), nil }), nil
	}
	// A time far ahead is no time to wait for.
	grace := time.Duration(g.GraceSeconds) * time.Second
	if rest := s.UpdateTimestamp.Add(grace).Sub(l.now); rest > 0 && rest <= 2*grace {
		whole := (rest + time.Second - 1).Truncate(time.Second)
		return wait(whole, newNote(l.pod, NoteGrace, "the change is written when the grace period ends")), nil
	}
	return l.applyNext(s, c), nil
}

// nextBatch waits for the containers of the last batch, and then writes the next.
func (l look) nextBatch(s *kruise.InPlaceUpdateState) (Action, error) {
	if s.PreCheckBeforeNext != nil {
		for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
			status := statusOf(l.pod, name)
			if status == nil && find(l.pod.Spec.Containers, name) == nil {
				continue
			}
			if status == nil || !status.Ready {
				return wait(recheck, newNote(l.pod, NoteBatch, "container "+name+" is not ready; others wait for it")), nil
			}
		}
	}
	return l.applyNext(s, left(s)), nil
}

func (l look) applyNext(s *kruise.InPlaceUpdateState, c *Change) Action {
	return l.writeBatch(c, func() ([]write.Op, error) { return l.edit().apply(s.DeepCopy(), c) })
}

// makeReady puts a pod whose update is complete back into traffic.
func (l look) makeReady() Action {
	pod, gate := l.pod, l.gate()
	if !lifecycle.HasGate(pod, gate) || statusOfCondition(pod, gate) == corev1.ConditionTrue {
		return l.relabel()
	}
	if pod.Status.Phase == corev1.PodPending && statusOfCondition(pod, corev1.ContainersReady) == "" {
		// The kubelet is about to report for the first time. Until then nothing depends on the gate, and of two writers that
		// add conditions one is rejected.
		return wait(recheck, newNote(pod, NoteNotStarted, "the kubelet has not reported the pod's containers yet"))
	}
	return Action{Verdict: Write, Step: StepReady, Write: l.write(write.Status, func() ([]write.Op, error) {
		ready := corev1.PodCondition{
			Type: gate, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(l.now),
		}
		return append(l.unchanged(), lifecycle.SetConditions(pod, ready)...), nil
	})}
}

// Restart is a container that restarted without an update.
type Restart struct {
	// Container that restarted.
	Container string
	// Count is how often.
	Count int32
}

// UnplannedRestarts returns the containers and init containers of a pod that restarted more often since the pod was
// created than updates by this package explain, by name. The updates must have Policy.RecordRestarts. Nil keys are
// those of OpenKruise.
//
//   - A write that restarts a container explains one restart of that container, from the write on: the next restart,
//     for whatever reason it happens, starts what was written. So a restart that an update causes never counts, neither
//     while the update is under way nor after it. One exception: a restart by a resize counts until the write that
//     follows the resize at once.
//   - Further restarts count, also those of a new image that crashes, and those while other containers are updated.
//   - The counts of all updates add up. A pod that is created again starts from zero.
//   - A restart that was explained and never happened hides one that comes later: where an update was taken back before
//     the node had done it, where the container had not started yet, and where one restart served for a resize and an
//     image. The next update that restarts the container ends that.
//   - A node that counts again from zero, because it lost its containers and logs, hides restarts until its count is
//     above the one before. Restarts that counted when the last update was written stay.
//   - Restarts by updates of other writers count, as do restarts that an update of an older version caused.
func UnplannedRestarts(pod *corev1.Pod, keys *kruise.Keys) ([]Restart, error) {
	records, err := plannedRestarts(pod, keys)
	if err != nil {
		return nil, err
	}
	var all []Restart
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if n := records[list[i].Name].unplanned(list[i].RestartCount); n > 0 {
				all = append(all, Restart{Container: list[i].Name, Count: n})
			}
		}
	}
	slices.SortFunc(all, func(a, b Restart) int { return cmp.Compare(a.Container, b.Container) })
	return all, nil
}

// planned is what updates explain of the restarts of a container.
type planned struct {
	// Unplanned are the restarts that counted when the last update was written.
	Unplanned int32 `json:"unplanned,omitempty"`
	// Through is the restart count up to which restarts since then do not count.
	Through int32 `json:"through"`
}

func (p planned) unplanned(restartCount int32) int32 {
	return p.Unplanned + max(0, restartCount-p.Through)
}

func plannedRestarts(pod *corev1.Pod, keys *kruise.Keys) (map[string]planned, error) {
	key, text, _ := keys.Lookup(pod.Annotations, (*kruise.Keys).PlannedRestartsKey)
	records, err := decode[map[string]planned](key, text)
	return ptr.Deref(records, nil), err
}

// explain records the restarts that the write of a batch causes. A record that cannot be read is replaced: it holds up
// no update.
func (e *edit) explain(c *Change, batch []string) error {
	if !e.policy.RecordRestarts {
		return nil
	}
	by := e.inBatch(c, batch).Restarts(e.pod)
	resized := (&Change{Resources: only(c.Resources, batch)}).Restarts(e.pod) // by the write before
	if len(by)+len(resized) == 0 {
		return nil
	}
	had, err := plannedRestarts(e.pod, e.policy.Keys)
	if err != nil {
		had = nil
	}
	state, err := StateOf(e.pod, e.policy.Keys)
	if err != nil {
		return err
	}
	done := incomplete(e.pod, state, e.policy).code == ""
	records := maps.Clone(had)
	if records == nil {
		records = map[string]planned{}
	}
	for _, name := range union(by, resized) {
		writes := writesOf{change: slices.Contains(by, name), resize: slices.Contains(resized, name)}
		records[name] = e.next(name, had[name], writes, done)
	}
	data, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode %s: %w", e.policy.Keys.PlannedRestartsKey(), err)
	}
	e.policy.Keys.RemoveOlder(e.annotations, (*kruise.Keys).PlannedRestartsKey)
	e.annotations[e.policy.Keys.PlannedRestartsKey()] = ptr.To(string(data))
	return nil
}

// writesOf are the writes of a batch that restart a container.
type writesOf struct{ change, resize bool }

// next is the record of a container once the writes of a batch are made. done means that the node has done all writes
// before.
func (e *edit) next(name string, old planned, writes writesOf, done bool) planned {
	var count int32
	if status := statusOf(e.pod, name); status != nil {
		count = status.RestartCount
	}
	next := planned{Unplanned: old.unplanned(count), Through: count}
	if !done && old.Through > count {
		// The node may be about to restart the container for an earlier write. Of several such writes it sees the last.
		next.Through++
	}
	switch {
	case !writes.resize:
	case e.hasResized(name): // the last restart is that of the resize
		next.Unplanned = old.unplanned(count - 1)
	default:
		next.Through++
	}
	if writes.change {
		next.Through++
	}
	return next
}

// hasResized reports whether a container runs with the resources in its spec.
func (e *edit) hasResized(name string) bool {
	status := statusOf(e.pod, name)
	return status != nil && status.State.Running != nil && unresized(e.pod, name).code == ""
}

package inplace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// PlannedRestartsKey is the annotation of a pod in which updates record the restarts that they cause, with
// Policy.RecordRestarts. UnplannedRestarts reads the annotation.
const PlannedRestartsKey = "kruisekit.dev/planned-restarts"

// Restart is a container that restarted without an update.
type Restart struct {
	// Container that restarted.
	Container string
	// Count is how often.
	Count int32
}

// UnplannedRestarts returns the containers and init containers of a pod that restarted more often since the pod was
// created than updates by this package explain, by name. The updates must have Policy.RecordRestarts.
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
func UnplannedRestarts(pod *corev1.Pod) ([]Restart, error) {
	records, err := plannedRestarts(pod)
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

func plannedRestarts(pod *corev1.Pod) (map[string]planned, error) {
	records, err := decode[map[string]planned](PlannedRestartsKey, pod.Annotations[PlannedRestartsKey])
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
	had, err := plannedRestarts(e.pod)
	if err != nil {
		had = nil
	}
	state, err := StateOf(e.pod, e.policy.Keys)
	if err != nil {
		return err
	}
	done := state == nil || incomplete(e.pod, state, e.policy).code == ""
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
		return fmt.Errorf("encode %s: %w", PlannedRestartsKey, err)
	}
	e.annotations[PlannedRestartsKey] = ptr.To(string(data))
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

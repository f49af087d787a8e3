package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

// HasGate reports whether the pod has a readiness gate for a condition.
func HasGate(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == condition
	})
}

// ConditionOf returns the pod's condition of a type, in place; nil where the pod has none.
func ConditionOf(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	if i := indexOf(pod, t); i >= 0 {
		return &pod.Status.Conditions[i]
	}
	return nil
}

// Readiness returns the condition Ready as the kubelet computes it from the containers and all readiness gates once the
// given conditions are written, in both directions. It returns nil where the pod has the condition with that status, or
// ContainersReady is not known. Write it where no kubelet does, as in a simulation; on nodes write what Ready returns.
func Readiness(pod *corev1.Pod, now time.Time, changes ...corev1.PodCondition) *corev1.PodCondition {
	current := func(t corev1.PodConditionType) *corev1.PodCondition {
		if i := slices.IndexFunc(changes, func(c corev1.PodCondition) bool { return c.Type == t }); i >= 0 {
			return &changes[i]
		}
		return ConditionOf(pod, t)
	}
	containers := current(corev1.ContainersReady)
	if containers == nil {
		return nil
	}
	c := corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
	}
	missing := missingGates(pod, current)
	switch {
	case containers.Status != corev1.ConditionTrue:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, containers.Reason, containers.Message
	case len(missing) > 0:
		c.Status, c.Reason, c.Message =
			corev1.ConditionFalse, kruise.ReasonReadinessGatesNotReady, strings.Join(missing, ", ")
	}
	if ready := ConditionOf(pod, corev1.PodReady); ready != nil && ready.Status == c.Status {
		return nil
	}
	return &c
}

// missingGates says which readiness gates of the pod are not open.
func missingGates(pod *corev1.Pod, current func(corev1.PodConditionType) *corev1.PodCondition) []string {
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := current(gate.ConditionType); {
		case c == nil:
			missing = append(missing, fmt.Sprintf("readiness gate %q has no condition", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("readiness gate %q is %s", gate.ConditionType, c.Status))
		}
	}
	return missing
}

// Ready returns the condition Ready as it follows from all readiness gates once the given conditions are written. It
// returns nil unless that is False and the pod's condition is not: only the kubelet makes a pod ready.
func Ready(pod *corev1.Pod, now time.Time, changes ...corev1.PodCondition) *corev1.PodCondition {
	containers := ConditionOf(pod, corev1.ContainersReady)
	if ConditionOf(pod, corev1.PodReady) == nil || containers == nil || containers.Status != corev1.ConditionTrue {
		return nil
	}
	if c := Readiness(pod, now, changes...); c != nil && c.Status == corev1.ConditionFalse {
		return c
	}
	return nil
}

// TestCondition returns the tests that a condition of the pod still has its status and message; none where the pod
// lacks the condition. Use it together with SetConditions, which tests the rest.
func TestCondition(pod *corev1.Pod, t corev1.PodConditionType) []write.Op {
	i := indexOf(pod, t)
	if i < 0 {
		return nil
	}
	c, at := &pod.Status.Conditions[i], strconv.Itoa(i)
	var message any
	if c.Message != "" {
		message = c.Message
	}
	return []write.Op{
		write.Test(write.Pointer("status", "conditions", at, "status"), c.Status),
		write.Test(write.Pointer("status", "conditions", at, "message"), message),
	}
}

// SetConditions returns the operations that set conditions of the pod's status. They test that each condition still
// stands where the pod has it. Where the pod lacks a condition, they test the resource version: two writers must not
// both add the condition. They do not test the value of a condition: add a test where it matters.
func SetConditions(pod *corev1.Pod, conditions ...corev1.PodCondition) []write.Op {
	var ops, added []write.Op
	empty := len(pod.Status.Conditions) == 0
	for i := range conditions {
		c := &conditions[i]
		if at := indexOf(pod, c.Type); at >= 0 {
			path := write.Pointer("status", "conditions", strconv.Itoa(at))
			ops = append(ops, write.Test(path+"/type", c.Type), write.Replace(path, c))
			continue
		}
		if len(added) == 0 && pod.ResourceVersion != "" {
			ops = append(ops, write.Test(write.Pointer("metadata", "resourceVersion"), pod.ResourceVersion))
		}
		if empty {
			added = append(added, write.Add(write.Pointer("status", "conditions"), []*corev1.PodCondition{c}))
			empty = false
			continue
		}
		added = append(added, write.Add(write.Pointer("status", "conditions", "-"), c))
	}
	return append(ops, added...)
}

func indexOf(pod *corev1.Pod, t corev1.PodConditionType) int {
	return slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
}

// A Gate is a readiness gate that several writers close, each with entries of its own. The entries are a JSON list in
// the message of the gate's condition, and the condition is True while there are none.
type Gate struct {
	// Type of the condition; empty for KruisePodReady.
	Type corev1.PodConditionType
	// Shared says that a writer who knows no entries sets the condition as well. While it is False by that writer, its
	// message is kept as an entry, and comes back when no other entry is left. When that writer makes the condition True,
	// all entries are gone: look at IsHeld in each pass, and hold again. Without Shared such a message is an error, since
	// replacing it would end the reason of its writer.
	Shared bool
	// SetReady has the writes set the condition Ready as well, to True and to False, as Readiness computes it from
	// ContainersReady and all gates. It is for pods that no kubelet runs, as on simulated nodes.
	SetReady bool
}

// Hold returns the write of the pod's status after which an entry keeps the pod not ready: the gate's condition, and
// Ready where it follows at once. It returns nil where the pod has the entry already, or lacks the gate.
//
// The write is a JSON patch, and its Body a write.Ops. It tests the UID and the entries that it replaces, so that no
// entry of another writer is lost and no released entry comes back. Where a test fails (see write.IsOutdated), read the
// pod and call Hold again.
func (g Gate) Hold(pod *corev1.Pod, userAgent, key string, now time.Time) (*write.Write, error) {
	return g.set(pod, kruise.NotReadyEntry{UserAgent: userAgent, Key: key}, true, now)
}

// Release returns the write of the pod's status after which an entry no longer keeps the pod not ready. It returns nil
// where there is no such entry. The write tests what the write of Hold tests. The pod becomes ready when no entry is
// left: the kubelet writes Ready, or this write does with SetReady.
func (g Gate) Release(pod *corev1.Pod, userAgent, key string, now time.Time) (*write.Write, error) {
	return g.set(pod, kruise.NotReadyEntry{UserAgent: userAgent, Key: key}, false, now)
}

// IsHeld reports whether an entry of a writer keeps the pod not ready.
func (g Gate) IsHeld(pod *corev1.Pod, userAgent, key string) bool {
	entries, err := g.entriesOf(pod)
	return err == nil && slices.Contains(entries, kruise.NotReadyEntry{UserAgent: userAgent, Key: key})
}

func (g Gate) condition() corev1.PodConditionType {
	return cmp.Or(g.Type, kruise.KruisePodReadyConditionType)
}

// set returns the write after which an entry keeps the pod not ready, or no longer does; nil where nothing is to be
// written.
func (g Gate) set( //nolint:revive // the tests of a move besides four arguments
	pod *corev1.Pod, entry kruise.NotReadyEntry, held bool, now time.Time, tests ...write.Op,
) (*write.Write, error) {
	entries, err := g.entriesOf(pod)
	if err != nil || !HasGate(pod, g.condition()) || slices.Contains(entries, entry) == held {
		return nil, err
	}
	if held {
		entries = append(entries, entry)
	} else {
		entries = slices.DeleteFunc(entries, func(e kruise.NotReadyEntry) bool { return e == entry })
	}
	c, err := g.with(pod, entries, now)
	if err != nil {
		return nil, err
	}
	changes := []corev1.PodCondition{c}
	var ready *corev1.PodCondition
	switch {
	case g.SetReady:
		ready = Readiness(pod, now, c)
		tests = append(tests, TestCondition(pod, corev1.ContainersReady)...)
	case held:
		ready = Ready(pod, now, c)
	}
	if ready != nil {
		changes = append(changes, *ready)
	}
	ops := slices.Concat(write.TestUID(pod), tests, TestCondition(pod, g.condition()), SetConditions(pod, changes...))
	return write.JSON(pod, write.Status, ops...), nil
}

// with returns the gate's condition with these entries.
func (g Gate) with(pod *corev1.Pod, entries []kruise.NotReadyEntry, now time.Time) (corev1.PodCondition, error) {
	c := corev1.PodCondition{Type: g.condition(), Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}
	if len(entries) > 0 {
		c.Status = corev1.ConditionFalse
	}
	if foreign := slices.IndexFunc(entries, isForeign); g.Shared && foreign >= 0 {
		c.Reason = ConditionOf(pod, c.Type).Reason
		if len(entries) == 1 {
			c.Message = entries[foreign].Key
			return c, nil
		}
	}
	slices.SortFunc(entries, func(a, b kruise.NotReadyEntry) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	if entries == nil {
		entries = []kruise.NotReadyEntry{}
	}
	message, err := json.Marshal(entries)
	if err != nil {
		return corev1.PodCondition{}, fmt.Errorf("encode entries of %s: %w", c.Type, err)
	}
	c.Message = string(message)
	return c, nil
}

// isForeign reports whether an entry is the message of a writer who knows no entries.
func isForeign(e kruise.NotReadyEntry) bool { return e.UserAgent == "" }

// entriesOf returns the entries in the message.
func (g Gate) entriesOf(pod *corev1.Pod) ([]kruise.NotReadyEntry, error) {
	c := ConditionOf(pod, g.condition())
	if c == nil || c.Status == corev1.ConditionTrue || c.Message == "" && !g.Shared {
		return nil, nil
	}
	var entries []kruise.NotReadyEntry
	if err := json.Unmarshal([]byte(c.Message), &entries); err != nil {
		if g.Shared {
			return []kruise.NotReadyEntry{{Key: c.Message}}, nil
		}
		return nil, fmt.Errorf("read entries of %s: %w", g.condition(), err)
	}
	return entries, nil
}

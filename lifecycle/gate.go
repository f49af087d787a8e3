package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

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
}

// Hold returns the write of the pod's status after which an entry keeps the pod not ready: the gate's condition, and
// Ready where it follows at once. It returns nil where the pod has the entry already, or lacks the gate.
//
// The write tests the UID and what it was decided upon, so that no entry of another writer is lost and no released
// entry comes back. Where a test fails (see write.IsOutdated), read the pod and call Hold again.
func (g Gate) Hold(pod *corev1.Pod, userAgent, key string, now time.Time) (*write.Write, error) {
	return g.set(pod, kruise.NotReadyEntry{UserAgent: userAgent, Key: key}, true, now)
}

// Release returns the write of the pod's status after which an entry no longer keeps the pod not ready. It returns nil
// where there is no such entry. The write tests what the write of Hold tests. The pod becomes ready when no entry is
// left; the kubelet writes Ready itself.
func (g Gate) Release(pod *corev1.Pod, userAgent, key string, now time.Time) (*write.Write, error) {
	return g.set(pod, kruise.NotReadyEntry{UserAgent: userAgent, Key: key}, false, now)
}

// IsHeld reports whether an entry of a writer keeps the pod not ready.
func (g Gate) IsHeld(pod *corev1.Pod, userAgent, key string) bool {
	entries, err := g.entriesOf(pod)
	return err == nil && slices.Contains(entries, kruise.NotReadyEntry{UserAgent: userAgent, Key: key})
}

// IsHeld is Gate.IsHeld of the gate KruisePodReady.
func IsHeld(pod *corev1.Pod, userAgent, key string) bool { return Gate{}.IsHeld(pod, userAgent, key) }

func (g Gate) condition() corev1.PodConditionType {
	return cmp.Or(g.Type, kruise.KruisePodReadyConditionType)
}

// set returns the write after which an entry keeps the pod not ready, or no longer does; nil where nothing is to be
// written.
func (g Gate) set( //nolint:revive // the tests of a move beside four arguments
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
	if ready := Ready(pod, now, c); ready != nil && held {
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

package rollout

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// mark plans the conditions of the pods whose condition does not hold for the set. Pods that are updated now get theirs
// afterwards.
func (p *planner) mark() {
	chosen := map[types.UID]bool{}
	for _, c := range p.result.Updates {
		chosen[c.Pod.UID] = true
	}
	for _, m := range p.members {
		if chosen[m.pod.UID] {
			continue
		}
		was, known := upgradableBy(lifecycle.ConditionOf(m.pod, kruise.SidecarSetUpgradable))[p.in.Set.Name]
		upgradable := m.updated || p.canUpdate(m)
		switch {
		case !upgradable && !p.selected(m):
			continue
		case upgradable && known && was, upgradable && !known && (!m.updated || m.last == nil):
			continue // it holds, or no update has written it yet
		}
		if change := p.in.mark(m.pod, upgradable); change != nil {
			p.result.Marks = append(p.result.Marks, change)
		}
	}
}

// mark returns the write of the condition that reports whether the set can update the pod; nil if it does so already.
func (in *Input) mark(pod *corev1.Pod, upgradable bool) *Change {
	old := lifecycle.ConditionOf(pod, kruise.SidecarSetUpgradable)
	all := upgradableBy(old)
	was, known := all[in.Set.Name]
	all[in.Set.Name] = upgradable
	change := markOf(pod, all, in.Now)
	if change != nil {
		change.Blocks = !upgradable && (!known || was)
	}
	return change
}

// upgradableBy returns what a condition reports of each set. A message that cannot be read reports nothing, and is
// replaced.
func upgradableBy(c *corev1.PodCondition) map[string]bool {
	all := map[string]bool{}
	if c == nil || json.Unmarshal([]byte(c.Message), &all) != nil || all == nil {
		return map[string]bool{}
	}
	return all
}

// markOf returns the write of the condition with these values; nil if the pod has them.
func markOf(pod *corev1.Pod, all map[string]bool, now time.Time) *Change {
	c := corev1.PodCondition{
		Type: kruise.SidecarSetUpgradable, Status: corev1.ConditionTrue, Reason: kruise.SidecarSetUpgradableReasonAll,
		LastTransitionTime: metav1.NewTime(now),
	}
	for _, upgradable := range all {
		if !upgradable {
			c.Status, c.Reason = corev1.ConditionFalse, kruise.SidecarSetUpgradableReasonImmutableField
		}
	}
	message, _ := json.Marshal(all)
	c.Message = string(message)
	if old := lifecycle.ConditionOf(pod, c.Type); old != nil && old.Status == c.Status {
		if old.Reason == c.Reason && old.Message == c.Message {
			return nil
		}
		c.LastTransitionTime = old.LastTransitionTime
	}
	ops := slices.Concat(write.TestUID(pod), lifecycle.TestCondition(pod, c.Type), lifecycle.SetConditions(pod, c))
	return &Change{Write: *write.JSON(pod, write.Status, ops...), Action: ActionMark, Pod: pod}
}

package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Mark is a condition of a pod.
type Mark struct {
	// Pod as it was observed.
	Pod *corev1.Pod
	// Condition as it is to be.
	Condition corev1.PodCondition
	// Upgradable is what it says of the set; of all of them its status does.
	Upgradable bool
	// New says that the pod has said otherwise of the set until now, or nothing.
	New bool
}

// Apply gives the pod with the condition.
func (m Mark) Apply() *corev1.Pod {
	pod := m.Pod.DeepCopy()
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == m.Condition.Type })
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, m.Condition)
		return pod
	}
	pod.Status.Conditions[at] = m.Condition
	return pod
}

// Patch is the condition as a strategic merge patch of the pod's status, of this pod and no other of its name.
func (m Mark) Patch() ([]byte, error) {
	data, err := json.Marshal(struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Status struct {
			Conditions []corev1.PodCondition `json:"conditions"`
		} `json:"status"`
	}{
		Metadata: struct {
			UID types.UID `json:"uid"`
		}{m.Pod.UID},
		Status: struct {
			Conditions []corev1.PodCondition `json:"conditions"`
		}{[]corev1.PodCondition{m.Condition}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode condition: %w", err)
	}
	return data, nil
}

// mark finds the pods whose condition does not say of the set what is so. Those that are updated now carry their own.
func (p *planner) mark() {
	chosen := map[types.UID]bool{}
	for i := range p.plan.Update {
		chosen[p.plan.Update[i].Pod.UID] = true
	}
	for _, m := range p.members {
		if chosen[m.pod.UID] {
			continue
		}
		told, known := p.told(m)
		upgradable := m.updated || p.canUpdate(m)
		switch {
		case !upgradable && !p.selected(m):
			continue
		case upgradable && known && told, upgradable && !known && (!m.updated || m.last == nil):
			continue // it is right, or nobody has said anything yet
		}
		if mark := p.markOf(m, upgradable); mark != nil {
			p.plan.Mark = append(p.plan.Mark, *mark)
		}
	}
}

// Forget finds the pods whose condition says that a set cannot update them which does not exist any more, and lets them say
// nothing of it.
func Forget(pods []*corev1.Pod, set string, now time.Time) []Mark {
	var marks []Mark
	for _, pod := range pods {
		c := lifecycle.ConditionOf(pod, pub.SidecarSetUpgradable)
		if c == nil {
			continue
		}
		all := readMessage(c.Message)
		if upgradable, told := all[set]; upgradable || !told {
			continue
		}
		delete(all, set)
		if fresh, err := conditionOf(all, c, now); err == nil && fresh != nil {
			marks = append(marks, Mark{Pod: pod, Condition: *fresh, Upgradable: true})
		}
	}
	return marks
}

// told is what the condition says of the set.
func (p *planner) told(m *member) (upgradable, known bool) {
	c := lifecycle.ConditionOf(m.pod, pub.SidecarSetUpgradable)
	if c == nil {
		return false, false
	}
	upgradable, known = readMessage(c.Message)[p.in.Set.Name]
	return upgradable, known
}

// readMessage reads what a condition says of each set. One that cannot be read says nothing, and is written anew.
func readMessage(text string) map[string]bool {
	all := map[string]bool{}
	if json.Unmarshal([]byte(text), &all) != nil || all == nil {
		return map[string]bool{}
	}
	return all
}

// markOf is the condition that says of the set whether it can update the pod; nil if it says so already.
func (p *planner) markOf(m *member, upgradable bool) *Mark {
	old := lifecycle.ConditionOf(m.pod, pub.SidecarSetUpgradable)
	all := map[string]bool{}
	if old != nil {
		all = readMessage(old.Message)
	}
	was, known := all[p.in.Set.Name]
	all[p.in.Set.Name] = upgradable
	maps.DeleteFunc(all, func(name string, _ bool) bool { return name != p.in.Set.Name && p.in.Gone != nil && p.in.Gone(name) })
	c, err := conditionOf(all, old, p.in.Now)
	if err != nil {
		p.fail(m, err)
		return nil
	}
	if c == nil {
		return nil
	}
	return &Mark{Pod: m.pod, Condition: *c, Upgradable: upgradable, New: !known || was != upgradable}
}

// conditionOf is the condition of what is so for each set; nil if the old one says the same.
func conditionOf(all map[string]bool, old *corev1.PodCondition, now time.Time) (*corev1.PodCondition, error) {
	c := &corev1.PodCondition{
		Type: pub.SidecarSetUpgradable, Status: corev1.ConditionTrue, Reason: pub.SidecarSetUpgradableReasonAll,
		LastTransitionTime: metav1.NewTime(now),
	}
	for _, is := range all {
		if !is {
			c.Status, c.Reason = corev1.ConditionFalse, pub.SidecarSetUpgradableReasonImmutableField
		}
	}
	message, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode condition: %w", err)
	}
	c.Message = string(message)
	if old != nil && old.Status == c.Status {
		if old.Reason == c.Reason && old.Message == c.Message {
			return nil, nil
		}
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c, nil
}

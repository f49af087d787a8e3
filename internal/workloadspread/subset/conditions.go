package subset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
)

// decideConditions decides the conditions of each subset, and which pods are stuck.
func (c *counter) decideConditions() {
	old := byName(c.Spread.Status.SubsetStatuses)
	critical := rescheduleAfter(c.Spread)
	if critical == 0 {
		return
	}
	stuck, subsets := c.stuck(critical), c.Spread.Spec.Subsets
	for i := range subsets {
		name := subsets[i].Name
		var conditions []metav1.Condition
		if was := old[name]; was != nil {
			if known := meta.FindStatusCondition(was.Conditions, string(appsv1beta1.SubsetSchedulable)); known != nil {
				conditions = []metav1.Condition{*known}
			}
		}
		last := i == len(subsets)-1
		c.schedulable(name, &conditions, !last && len(stuck[name]) > 0, last)
		if !last {
			c.report.Stuck = append(c.report.Stuck, stuck[name]...)
		}
		c.conditions[name] = conditions
	}
	slices.SortFunc(c.report.Stuck, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if len(c.report.Stuck) > MaxReschedules {
		c.report.Stuck = c.report.Stuck[:MaxReschedules]
		c.requeue(time.Second)
	}
}

// stuck returns the pods that no node of their subset has room for, by subset. The last subset has none.
func (c *counter) stuck(critical time.Duration) map[string][]*corev1.Pod {
	stuck, subsets := map[string][]*corev1.Pod{}, c.Spread.Spec.Subsets
	for _, m := range c.Members {
		if m.Subset == Outside || m.Subset == subsets[len(subsets)-1].Name {
			continue
		}
		if m.Pod.DeletionTimestamp != nil || m.Pod.Spec.NodeName != "" || m.Pod.Status.Phase != corev1.PodPending ||
			!Unschedulable(m.Pod) {
			continue
		}
		if left := m.Pod.CreationTimestamp.Add(critical).Sub(c.Now); left > 0 {
			c.requeue(left)
		} else {
			stuck[m.Subset] = append(stuck[m.Subset], m.Pod)
		}
	}
	return stuck
}

// schedulable sets the condition of one subset, and leaves one of the same status as it is.
func (c *counter) schedulable(name string, conditions *[]metav1.Condition, stuck, last bool) {
	next := metav1.Condition{
		Type: string(appsv1beta1.SubsetSchedulable), Status: metav1.ConditionTrue, Reason: appsv1beta1.SubsetReasonSufficient,
		LastTransitionTime: stamp(c.Now),
	}
	if stuck {
		next.Status, next.Reason = metav1.ConditionFalse, appsv1beta1.SubsetReasonPodUnschedulable
	}
	old := meta.FindStatusCondition(*conditions, next.Type)
	if old != nil && old.Status == next.Status {
		return
	}
	if old != nil && old.Status == metav1.ConditionFalse && !last {
		if left := old.LastTransitionTime.Add(UnschedulableFor).Sub(c.Now); left > 0 && left <= 2*UnschedulableFor {
			c.requeue(left)
			return
		}
		c.note(note.Info, NoteRecovered, name,
			fmt.Sprintf("Subset %s takes pods again, %s after its last pod without a node", name, UnschedulableFor))
	}
	meta.SetStatusCondition(conditions, next)
}

// Schedulable reports whether a subset takes pods, by its entry in status.subsetStatuses.
func Schedulable(total *Entry) bool {
	return total == nil || !meta.IsStatusConditionFalse(total.Conditions, string(appsv1beta1.SubsetSchedulable))
}

// rescheduleAfter is how long a pod may find no node; zero for any time.
func rescheduleAfter(ws *Spread) time.Duration {
	s := &ws.Spec.ScheduleStrategy
	if s.Type != appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType || s.Adaptive == nil ||
		s.Adaptive.RescheduleCriticalSeconds == nil {
		return 0
	}
	return time.Duration(max(*s.Adaptive.RescheduleCriticalSeconds, 0)) * time.Second
}

// Unschedulable reports whether the scheduler finds no node for a pod.
func Unschedulable(pod *corev1.Pod) bool {
	c := lifecycle.ConditionOf(pod, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

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
	"github.com/kruisekit/kruisekit/note"
)

// ConditionLimitKnown is False while the limit of a subset cannot be resolved, and missing otherwise.
const ConditionLimitKnown = "MaxReplicasKnown"

// decideConditions decides the conditions of each subset, and which pods are stuck.
func (c *counter) decideConditions() {
	old := byName(c.Spread.Status.SubsetStatuses)
	critical := rescheduleAfter(c.Spread)
	stuck := map[string][]*corev1.Pod{}
	subsets := c.Spread.Spec.Subsets
	for _, m := range c.Members {
		if critical == 0 || m.Subset == Outside || m.Subset == subsets[len(subsets)-1].Name {
			continue
		}
		if left, waits := waiting(m.Pod, critical, c.Now); waits && left <= 0 {
			stuck[m.Subset] = append(stuck[m.Subset], m.Pod)
		} else if waits {
			c.requeue(left)
		}
	}
	for i := range subsets {
		name := subsets[i].Name
		var conditions []metav1.Condition
		if was := old[name]; was != nil {
			conditions = slices.Clone(was.Conditions)
		}
		if critical == 0 {
			meta.RemoveStatusCondition(&conditions, string(appsv1beta1.SubsetSchedulable))
		} else {
			last := i == len(subsets)-1
			c.schedulable(name, &conditions, !last && len(stuck[name]) > 0, last)
			if !last {
				c.report.Stuck = append(c.report.Stuck, stuck[name]...)
			}
		}
		c.limitKnown(i, &conditions)
		if len(conditions) > 0 {
			c.conditions[name] = conditions
		}
	}
	slices.SortFunc(c.report.Stuck, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if len(c.report.Stuck) > MaxReschedules {
		c.report.Stuck = c.report.Stuck[:MaxReschedules]
		c.requeue(time.Second)
	}
}

// schedulable sets the condition of one subset.
func (c *counter) schedulable(name string, conditions *[]metav1.Condition, stuck, last bool) {
	is := meta.FindStatusCondition(*conditions, string(appsv1beta1.SubsetSchedulable))
	switch {
	case stuck:
		setCondition(conditions, unschedulable(), c.Now)
	case is != nil && is.Status == metav1.ConditionFalse && !last:
		if left := is.LastTransitionTime.Add(UnschedulableFor).Sub(c.Now); left > 0 && left <= 2*UnschedulableFor {
			c.requeue(left)
			return
		}
		setCondition(conditions, sufficient(), c.Now)
		c.note(note.Info, NoteRecovered, name,
			fmt.Sprintf("Subset %s takes pods again, %s after its last pod without a node", name, UnschedulableFor))
	default:
		setCondition(conditions, sufficient(), c.Now)
	}
}

func unschedulable() metav1.Condition {
	return metav1.Condition{
		Type:   string(appsv1beta1.SubsetSchedulable),
		Status: metav1.ConditionFalse,
		Reason: appsv1beta1.SubsetReasonPodUnschedulable,
	}
}

func sufficient() metav1.Condition {
	return metav1.Condition{
		Type: string(appsv1beta1.SubsetSchedulable), Status: metav1.ConditionTrue, Reason: appsv1beta1.SubsetReasonSufficient,
	}
}

// limitKnown reports a limit that cannot be resolved.
func (c *counter) limitKnown(i int, conditions *[]metav1.Condition) {
	if c.Limits[i] != Unresolved {
		meta.RemoveStatusCondition(conditions, ConditionLimitKnown)
		return
	}
	reason := NoteUnreadable
	for _, n := range c.Faults {
		if n.Object == c.Spread.Spec.Subsets[i].Name {
			reason = n.Code
		}
	}
	setCondition(conditions,
		metav1.Condition{Type: ConditionLimitKnown, Status: metav1.ConditionFalse, Reason: reason}, c.Now)
}

// setCondition sets a condition, and leaves one of the same status as it is.
func setCondition(conditions *[]metav1.Condition, to metav1.Condition, now time.Time) {
	if is := meta.FindStatusCondition(*conditions, to.Type); is != nil && is.Status == to.Status {
		return
	}
	to.LastTransitionTime = stamp(now)
	meta.SetStatusCondition(conditions, to)
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

// waiting reports whether a pod finds no node, and for how long it may still do so.
func waiting(pod *corev1.Pod, critical time.Duration, now time.Time) (left time.Duration, is bool) {
	if pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
		return 0, false
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return pod.CreationTimestamp.Add(critical).Sub(now), true
		}
	}
	return 0, false
}

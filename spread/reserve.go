package spread

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Reservation is a subset as Reserve judges the subset.
type Reservation struct {
	State

	// Revision is the value of the revision label of updated pods.
	Revision string
	// Partition is how many pods stay on older revisions because the user asked for that.
	Partition int32
	// UpdatingSince is when the update began; zero without one.
	UpdatingSince time.Time
}

// Reserved is what Reserve decides.
type Reserved struct {
	Verdict

	// Pods whose label of reservation changes or is missing, with its value, in the order of their names.
	Labels []PodLabel
	// Pods counts the reserved pods.
	Pods int32
	// Overdue counts those of them that were not updated in time. It leaves out those that are reserved already and are
	// not ready.
	Overdue int32
}

// PodLabel is the value that the label of reservation of a pod is to have.
type PodLabel struct {
	Pod      *corev1.Pod
	Reserved bool
}

// Value of the label.
func (l PodLabel) Value() string {
	if l.Reserved {
		return "true"
	}
	return "false"
}

// Reserve decides which pods are reserved: they have waited for a node, or for their update, for too long, or they are
// new in a subset in which pods had. A reserved pod counts again when it has been ready for long enough.
func Reserve(r Reservation, w Windows, now time.Time) Reserved {
	v := Reserved{Verdict: Verdict{Condition: r.Condition}}
	for _, p := range r.judged() {
		v.judge(&r, p, w, now)
	}
	v.Unschedulable = v.Pods > 0
	if v.Unschedulable {
		v.Condition = v.Condition.Set(corev1.ConditionFalse, ReasonReschedule, "reserved pods found", now)
	} else {
		v.Condition = v.Condition.Set(corev1.ConditionTrue, ReasonReschedule, "no reserved pods", now)
	}
	return v
}

// Grow returns the condition of a subset after the allocation: where a subset that has just recovered gets more
// replicas, the new pods must prove themselves first.
func (v Reserved) Grow(marked bool, current, next int32, now time.Time) Condition {
	if marked && !v.Unschedulable && next > current {
		return v.Condition.Set(corev1.ConditionFalse, ReasonReschedule, "subset just recovered scaled up", now)
	}
	return v.Condition
}

// candidate is a pod with what its subset means for it.
type candidate struct {
	pod *corev1.Pod
	// outdated pods are on older revisions, and are not kept there by the partition.
	outdated bool
}

// judged are the pods that are not being deleted, by name. The partition keeps ready pods first.
func (r *Reservation) judged() []candidate {
	pods := make([]*corev1.Pod, 0, len(r.Pods))
	for _, pod := range r.Pods {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(-cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	kept, all := r.Partition, make([]candidate, len(pods))
	for i, pod := range pods {
		outdated := pod.Labels[kruise.ControllerRevisionHashLabelKey] != r.Revision
		if outdated && kept > 0 {
			kept--
			outdated = false
		}
		all[i] = candidate{pod, outdated}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
	return all
}

func rank(pod *corev1.Pod) int {
	if _, ready := readySince(pod); ready {
		return 1
	}
	return 0
}

// readySince returns when a pod became ready, and reports whether the pod is ready.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	c := condition(pod, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue || pod.Status.Phase != corev1.PodRunning {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

func (v *Reserved) judge(r *Reservation, c candidate, w Windows, now time.Time) {
	label, labelled := c.pod.Labels[kruise.UnitedDeploymentReservedPodKey]
	var reserved bool
	switch {
	case !labelled && r.Condition.Unschedulable():
		reserved = true
		v.recheck(w.Unschedulable)
	case label == "true":
		reserved = v.stays(c, w, now)
	case c.outdated && !r.UpdatingSince.IsZero():
		rest := r.UpdatingSince.Add(w.Critical).Sub(now)
		if reserved = rest <= 0; reserved {
			v.Overdue++
			v.recheck(w.Unschedulable)
		}
		v.recheck(rest)
	default:
		late, rest := waits(c.pod, w.Critical, now)
		if reserved = late; reserved {
			v.recheck(w.Unschedulable)
		}
		v.recheck(rest)
	}
	if reserved {
		v.Pods++
	}
	if want := (PodLabel{c.pod, reserved}); label != want.Value() {
		v.Labels = append(v.Labels, want)
	}
}

// stays reports whether a reserved pod stays reserved.
func (v *Reserved) stays(c candidate, w Windows, now time.Time) bool {
	since, ready := readySince(c.pod)
	if c.outdated || !ready {
		if c.outdated && ready {
			v.Overdue++
		}
		v.recheck(w.Unschedulable)
		return true
	}
	rest := since.Add(w.Unschedulable).Sub(now)
	v.recheck(rest)
	return rest > 0
}

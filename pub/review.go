package pub

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Disruption is one operation on a pod.
type Disruption struct {
	// Pod before the operation.
	Pod *corev1.Pod
	// Operation that disrupts the pod.
	Operation Operation
	// User who asks for the operation, as the API server authenticated it.
	User string
	// Policy of the installation.
	Policy Policy
}

// Reason is why a disruption is admitted or refused.
type Reason string

const (
	// NoEffect admits an update that leaves the pod as available as it was.
	NoEffect Reason = "NoEffect"
	// PodExempt admits: the user exempted the pod.
	PodExempt Reason = "PodExempt"
	// PodUnavailable admits: the pod is unavailable already.
	PodUnavailable Reason = "PodUnavailable"
	// PodIgnored admits: the budget ignores the pod.
	PodIgnored Reason = "PodIgnored"
	// OperationUnprotected admits: the budget does not protect the operation.
	OperationUnprotected Reason = "OperationUnprotected"
	// Unsynced asks for Recount, because no status of the generation exists yet.
	Unsynced Reason = "Unsynced"
	// NothingDesired admits: no pod has to be available.
	NothingDesired Reason = "NothingDesired"
	// AlreadyRecorded admits: a disruption of the pod was recorded a short time ago, and is not known to be over.
	AlreadyRecorded Reason = "AlreadyRecorded"
	// GroupUnavailable admits: the group of the pod is unavailable already, and the verdict has the record.
	GroupUnavailable Reason = "GroupUnavailable"
	// Spent admits: the budget has room, and the verdict has the record.
	Spent Reason = "Spent"
	// UserExempt admits: the budget has no room, and the policy exempts the user.
	UserExempt Reason = "UserExempt"
	// Exhausted refuses: the budget has no room.
	Exhausted Reason = "Exhausted"
	// TooManyRecords refuses: the status has as many records as it can hold.
	TooManyRecords Reason = "TooManyRecords"
)

// MaxRecords is how many records the status of a budget can hold before disruptions are refused.
const MaxRecords = 2000

// Verdict is the answer to one disruption.
type Verdict struct {
	// Allowed admits the disruption. A verdict that is Unsynced does not.
	Allowed bool
	// Reason is never empty.
	Reason Reason
	// Text of a refusal, as clients of the reference have it.
	Text string
	// Record is to be written to the status before the disruption is admitted. Nil where nothing is spent.
	Record *Record
}

// Record is an admitted disruption in the status of a budget.
type Record struct {
	// Pod is the name of the pod, and Group that of its group; empty where the budget counts pods.
	Pod, Group string
	// Updated selects the map unavailablePods, else disruptedPods.
	Updated bool
	// Time of the admission.
	Time metav1.Time
}

// Review decides about one disruption of a pod that the budget guards, by the status of the budget alone. Pass the
// status that the record is to be written upon: after a conflict read the budget again and review again.
//
// A disruption by an exempt user is never refused. It is recorded like any other, so that the disruptions of other
// users wait.
func Review(b Budget, d Disruption, now time.Time) Verdict {
	v := review(b, d, now)
	if v.Allowed || !d.Policy.Exempts(d.User) {
		return v
	}
	exempt := Verdict{Allowed: true, Reason: UserExempt}
	if !b.full() {
		exempt.Record = b.recordOf(d, now)
	}
	return exempt
}

func review(b Budget, d Disruption, now time.Time) Verdict {
	switch {
	case d.Operation == Harmless:
		return Verdict{Allowed: true, Reason: NoEffect}
	case Exempt(d.Pod):
		return Verdict{Allowed: true, Reason: PodExempt}
	case !Available(d.Pod, d.Policy):
		return Verdict{Allowed: true, Reason: PodUnavailable}
	case b.Ignores(d.Pod.Labels):
		return Verdict{Allowed: true, Reason: PodIgnored}
	case !b.Protects(d.Operation, d.Policy):
		return Verdict{Allowed: true, Reason: OperationUnprotected}
	case !b.Synced():
		return Verdict{Reason: Unsynced, Text: "the budget has not been computed for its spec yet"}
	case b.Status.DesiredAvailable <= 0:
		return Verdict{Allowed: true, Reason: NothingDesired}
	case b.recorded(d, now):
		return Verdict{Allowed: true, Reason: AlreadyRecorded}
	}
	return b.spend(d, now)
}

// recorded reports whether a disruption of a pod was recorded a short time ago, and has not ended since: an older
// record, or one of an update that the pod shows as done, may end before the controller observes what is admitted now.
// The controller would then count the pod as available.
func (b Budget) recorded(d Disruption, now time.Time) bool {
	if at, ok := b.Status.DisruptedPods[d.Pod.Name]; ok && !now.After(at.Add(disruptedFor/2)) {
		return true
	}
	at, ok := b.Status.UnavailablePods[d.Pod.Name]
	return ok && !now.After(at.Add(updatedFor/2)) && !observe(d.Pod, d.Policy).updatedSince(at.Unix())
}

func (b Budget) spend(d Disruption, now time.Time) Verdict {
	// While more groups are unavailable than may be, none is free: the status may be old, and they available again.
	broken := b.isBroken(b.GroupOf(d.Pod)) && b.Status.CurrentAvailable >= b.Status.DesiredAvailable
	switch {
	case b.Status.UnavailableAllowed <= 0 && !broken:
		return Verdict{Reason: Exhausted, Text: "pub unavailable allowed is negative"}
	case b.full():
		return Verdict{
			Reason: TooManyRecords,
			Text: fmt.Sprintf("DisruptedPods and UnavailablePods maps too big: %d records are not confirmed by the "+
				"PodUnavailableBudget controller yet", b.records()),
		}
	}
	reason := Spent
	if broken {
		reason = GroupUnavailable
	}
	return Verdict{Allowed: true, Reason: reason, Record: b.recordOf(d, now)}
}

func (b Budget) records() int { return len(b.Status.DisruptedPods) + len(b.Status.UnavailablePods) }

// full reports whether the status can hold no further record.
func (b Budget) full() bool { return b.records() > MaxRecords }

func (b Budget) recordOf(d Disruption, now time.Time) *Record {
	return &Record{
		Pod: d.Pod.Name, Group: b.GroupOf(d.Pod), Updated: d.Operation == Update || d.Operation == Resize,
		Time: metav1.NewTime(now),
	}
}

package workloads

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Reasons of events that all kinds share.
const (
	reasonFailedCreate   = "FailedCreate"
	reasonCreatedPullJob = "CreatedImagePullJob"
	reasonFailedPullJob  = "FailedCreateImagePullJob"
	// reasonInvalidSpec is not among those of the reference, which emits none.
	reasonInvalidSpec = "InvalidSpec"
)

// Event is a reason and a text. The text may refer to %[1]s, the object; %[2]s, the workload; %[3]s, the revision;
// %[4]v, the error; %[5]s, the pod that the object is for; %[6]s, the write. The zero value is no event.
type Event struct{ Reason, Text string }

// Outcome are the events of a write that succeeded, and of one that was rejected.
type Outcome struct{ Succeeded, Failed Event }

// Events are the events of the writes of a kind. A write that was decided upon an older object has none.
type Events struct {
	CreatePod, DeletePod, CreateClaim, DeleteClaim Outcome
	// UpdateInPlace is about changes to another revision. It failed also for a pod that could only change in place, and
	// cannot.
	UpdateInPlace Outcome
	// MarkPod is about pods that are marked to be created again.
	MarkPod Outcome
	// ChangePod and ChangeClaim are about the writes of the kind itself.
	ChangePod, ChangeClaim Outcome
	// Ahead is about what comes before the update of a pod, see workload.Input.Ahead; NotAhead about what cannot be made.
	Ahead    Outcome
	NotAhead Event
	// Waits is about a pod that cannot be created yet. Its error is what the pod waits for.
	Waits Event
	// Invalid returns the event of a workload whose spec cannot be used, without placeholders. Nil and the zero Event are
	// for InvalidSpec.
	Invalid func(client.Object) Event
}

// of are the events of a write.
func (e *Events) of(w *workload.Write) Outcome {
	_, isPod := w.Object.(*corev1.Pod)
	choose := func(pod, claim Outcome) Outcome {
		if isPod {
			return pod
		}
		return claim
	}
	switch {
	case w.Verb == write.Create:
		return choose(e.CreatePod, e.CreateClaim)
	case w.Verb == write.Delete:
		return choose(e.DeletePod, e.DeleteClaim)
	case w.Action == workload.ActionUpdate:
		return e.UpdateInPlace
	case w.Action == workload.ActionUnready:
		return Outcome{Failed: e.UpdateInPlace.Failed}
	case w.Action == workload.ActionMark:
		return e.MarkPod
	case w.Action == workload.ActionAhead:
		return e.Ahead
	case w.Action == workload.ActionFirst, w.Action == workload.ActionPrepare:
		return choose(e.ChangePod, e.ChangeClaim)
	}
	return Outcome{}
}

// answered is a write with its answer.
type answered struct {
	*workload.Write

	object write.Object
	err    error
}

// emitAnswer emits the event of a write that succeeded, if it has one. Those of writes that failed follow when the pass
// has ended, which asks about some of them.
func (k *Kit) emitAnswer(o *Observation, a answered) {
	if a.Action == workload.ActionObserve {
		return
	}
	if a.Verb == write.Delete && apierrors.IsNotFound(a.err) {
		a.err = nil
	}
	if a.err == nil && !a.isStep() {
		k.emit(o, announcement{corev1.EventTypeNormal, k.options.Events.of(a.Write).Succeeded}, a.Write, nil)
	}
}

// isStep reports whether more writes follow until the pod is updated.
func (a *answered) isStep() bool {
	return a.Action == workload.ActionUpdate &&
		!revision.Match(a.object.GetLabels()[kruise.PodRevisionLabelKey], a.Revision)
}

// emitFailures emits what failed of the pods.
func (k *Kit) emitFailures(o *Observation, p *Plan) {
	for _, f := range p.Pass.Failures() {
		if f.Write != nil && f.Write.Action != workload.ActionAsk {
			k.emit(o, warning(k.options.Events.of(f.Write).Failed), f.Write, errors.Unwrap(f.Err))
		}
	}
	for _, f := range p.impossible {
		k.emitImpossible(o, f)
	}
}

// announcement is an event with its type.
type announcement struct {
	eventType string
	Event
}

func warning(e Event) announcement { return announcement{corev1.EventTypeWarning, e} }

func (k *Kit) emit(o *Observation, e announcement, w *workload.Write, err error) {
	about := subject{object: w.Object.GetName(), revision: w.Revision, err: err, write: w.String()}
	if w.Pod != nil {
		about.pod = w.Pod.Name
	}
	if e.Reason != "" {
		k.Event(o.Object, e.eventType, e.Reason, e.text(o, about))
	}
}

// subject is what an event is about.
type subject struct {
	object, revision, pod, write string
	err                          error
}

func (e Event) text(o *Observation, about subject) string {
	return fmt.Sprintf(e.Text, about.object, o.Object.GetName(), about.revision, about.err, about.pod, about.write)
}

// emitImpossible emits once that a pod cannot be updated: as long as the condition does not have the text.
func (k *Kit) emitImpossible(o *Observation, f workload.Failure) {
	failed := k.options.Events.UpdateInPlace.Failed
	if f.Ahead {
		failed = k.options.Events.NotAhead
	}
	if failed.Reason != "" && !o.hasText(k.options.Updating, f.Err) {
		k.Event(o.Object, corev1.EventTypeWarning, failed.Reason, failed.text(o, subject{
			object: f.Object, pod: f.Object, err: errors.Unwrap(f.Err),
		}))
	}
}

// emitWaits emits what a pod that is to be created waits for, once for as long as that is the same.
func (k *Kit) emitWaits(o *Observation, p *Plan) {
	text := ""
	if waits, e := p.Waits, k.options.Events.Waits; len(waits) > 0 && e.Reason != "" {
		text = e.text(o, subject{object: waits[0].Object, pod: waits[0].Object, err: errors.New(waits[0].Text)})
	}
	none := text == "" && p.Pass.Result().Difference.CreateMissing > 0 // pods are missing, and none is to be created now
	if !none && k.emitted.Changed(o.Key(), text) {
		k.Event(o.Object, corev1.EventTypeWarning, k.options.Events.Waits.Reason, text)
	}
}

// emitInvalid emits what of the spec cannot be used, as long as the status does not have the text.
func (k *Kit) emitInvalid(o *Observation, conditionType string, err error) {
	if err == nil || o.hasText(conditionType, err) {
		return
	}
	if of := k.options.Events.Invalid; of != nil && conditionType == k.options.Scaling {
		if e := of(o.Object); e.Reason != "" {
			k.Warningf(o.Object, e.Reason, "%s", e.Text)
			return
		}
	}
	k.Warningf(o.Object, reasonInvalidSpec, "%v", err)
}

// hasText reports whether the status has the text of a failure, as the cache shows the status or as it was written
// last.
func (o *Observation) hasText(conditionType string, err error) bool {
	if strings.Contains(o.Known.Failures[conditionType], err.Error()) {
		return true
	}
	old := o.Conditions.Find(conditionType)
	return old != nil && strings.Contains(old.Message, err.Error())
}

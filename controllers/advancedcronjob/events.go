package advancedcronjob

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/note"
)

// Reasons of events. Those of the CronJobs of Kubernetes have the same meaning here.
const (
	reasonCreated       = "SuccessfulCreate"
	reasonFailedCreate  = "FailedCreate"
	reasonDeleted       = "SuccessfulDelete"
	reasonReplaced      = "Replaced"
	reasonFinished      = "SawCompletedJob"
	reasonActive        = "JobAlreadyActive"
	reasonTooManyActive = "TooManyActive"
	reasonMissed        = "MissSchedule"
	reasonTooManyMissed = "TooManyMissedTimes"
	reasonClockAhead    = "ClockAhead"
	reasonInvalidSpec   = "InvalidSpec"
)

// emitted are the events that were emitted: about the spec, about a tick, and about a create.
type emitted struct {
	invalid, waiting, failing once.Texts[types.NamespacedName]
}

func (e *emitted) forget(name types.NamespacedName) {
	e.invalid.Forget(name)
	e.waiting.Forget(name)
	e.failing.Forget(name)
}

// emitInvalid reports what is wrong with the spec; once, as long as it is the same.
func (a *act) emitInvalid() {
	text := ""
	switch {
	case a.undecodable != nil:
		text = a.undecodable.Error()
	case a.invalid != nil:
		text = a.invalid.Error()
	}
	if a.emitted.invalid.Changed(a.key(), text) {
		a.api.Warningf(a.job, reasonInvalidSpec, "created no children: %s", text)
	}
}

// emitWaiting reports why a tick has no child; once for a tick.
func (a *act) emitWaiting() {
	reasons := map[string]string{
		schedule.NoteActive: reasonActive, schedule.NoteTooLate: reasonMissed, schedule.NoteTooMany: reasonTooManyActive,
		schedule.NoteTooManyMissed: reasonTooManyMissed, schedule.NoteClockAhead: reasonClockAhead,
	}
	held := slices.DeleteFunc(slices.Clone(a.notes), func(n note.Note) bool { return reasons[n.Code] == "" })
	about := make([]string, 0, len(held)+1)
	for _, n := range held {
		about = append(about, n.Code)
	}
	if len(held) > 0 {
		about = append(about, a.held.String())
	}
	if !a.emitted.waiting.Changed(a.key(), strings.Join(about, " ")) {
		return
	}
	for _, n := range held {
		kind := corev1.EventTypeWarning
		if n.Code == schedule.NoteActive {
			kind = corev1.EventTypeNormal
		}
		a.api.Event(a.job, kind, reasons[n.Code], n.Text)
	}
}

func (a *act) emitCreated(name string) {
	a.emitted.failing.Changed(a.key(), "")
	a.api.Normalf(a.job, reasonCreated, "Created %s %s", a.kind.name, name)
}

// emitFailed reports that the child of a tick could not be created; once for a text.
func (a *act) emitFailed(err error) {
	if text := err.Error(); a.emitted.failing.Changed(a.key(), text) {
		a.api.Warningf(a.job, reasonFailedCreate, "failed to create %s %s: %s", a.kind.name, a.create.GetName(), text)
	}
}

func (a *act) emitDeleted(reason string, n int) {
	what := "finished"
	if reason == reasonReplaced {
		what = "active"
	}
	a.api.Normalf(a.job, reason, "Deleted %s %ss: %d", what, a.kind.name, n)
}

// emitFinished reports the children that have ended since the status was written.
func (a *act) emitFinished() {
	for _, c := range finished(a.snapshot) {
		a.api.Normalf(a.job, reasonFinished, "Saw completed %s %s, condition: %s", a.kind.name, c.GetName(), c.state)
	}
}

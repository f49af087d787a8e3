package native

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

// The reasons of events about sets.
const (
	reasonInPlace    = "UpdatedPodInPlace"
	reasonEvicted    = "EvictedPod"
	reasonFailed     = "FailedUpdatePod"
	reasonComplete   = "RolloutComplete"
	reasonInvalid    = "InvalidRollout"
	reasonNotInPlace = "NotInPlace"
	reasonHeld       = "RolloutHeld"
	reasonHoldEnded  = "HoldEnded"
)

// textHeld is what a user must know who wants to go back while the Deployment is held.
const textHeld = "kubectl rollout undo refuses a paused Deployment: go back by kubectl set image, apply or " +
	"kubectl kruise rollout undo"

// run makes the pass, and emits the events of its writes.
func (l *loop) run(ctx context.Context, s *snapshot, p *plan) error {
	err := driver.Run(ctx, p.pass, driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(l.Client, l.Live), Now: l.Now, Owner: s.key(), Ledgers: l.Ledgers(),
		Ask: func(ctx context.Context, w *workload.Write) error { return l.options.Ask(ctx, w.Asked) },
		Answered: func(w *workload.Write, answer write.Object, err error) {
			if err == nil {
				l.emit(s, p, w, answer)
			}
		},
	})
	l.repeats.Note(s.key(), func(r *workload.Repeats) { *r = p.pass.Repeats() })
	for _, f := range p.pass.Failures() {
		if f.Write != nil {
			l.Warningf(s.set, reasonFailed, "Failed to update pod %s: %v", f.Object, f.Err)
		}
	}
	if p.pass.Err() != nil { // else the driver itself failed
		return failed(p.pass)
	}
	return err
}

// follow makes the writes of a Deployment and of its ReplicaSets that follow the pass over its pods, one after the
// other, until one fails.
func (l *loop) follow(ctx context.Context, s *snapshot, p *plan) error {
	if p.deployment == nil {
		return nil
	}
	l.unobserved.Note(s.key(), func(since *time.Time) {
		switch {
		case !p.deployment.IsUnobserved():
			*since = time.Time{}
		case since.IsZero():
			*since = s.now
		}
	})
	for _, w := range p.deployment.Writes(p.pass) {
		_, err := l.Send(ctx, s.key(), w, l.sets)
		if p.outdated = write.IsOutdated(err); p.outdated {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		if w.Object == s.set {
			l.ended(s, p)
		}
	}
	return nil
}

// ended emits why a hold has ended.
func (l *loop) ended(s *snapshot, p *plan) {
	why := "all pods run the change"
	switch {
	case !s.wanted:
		why = "neither the annotation nor the label of the namespace " + native.RolloutKey + " asks for it"
	case len(p.notes) > 0:
		why = p.notes[0].Text
	}
	l.Normalf(s.set, reasonHoldEnded, "Ended the hold of the rollout: %s", why)
}

// emit emits the event of a write that succeeded, and counts the pod.
func (l *loop) emit(s *snapshot, p *plan, w *workload.Write, answer write.Object) {
	after, _ := answer.(*corev1.Pod)
	switch {
	case w.Verb == write.Evict:
		l.Normalf(s.set, reasonEvicted, "Evicted pod %s, to be created at revision %s", w.Pod.Name, p.in.Update.Name)
		l.moved.WithLabelValues(string(l.kind), "evicted").Inc()
	case movedLabel(w.Pod, after):
		l.Normalf(s.set, reasonInPlace, "Updated pod %s in place to revision %s", w.Pod.Name, after.Labels[revisionLabel])
		l.moved.WithLabelValues(string(l.kind), "in_place").Inc()
	}
}

// report writes the status where it changed, and emits what follows from it.
func (l *loop) report(ctx context.Context, s *snapshot, p *plan) error {
	l.explain(ctx, s, p)
	progress := p.progress(s)
	switch {
	case !p.silent:
	case progress.InProgress == 0:
		progress = nil // a plain set again
	case s.reported == nil:
		return nil
	}
	w, err := s.write(progress)
	if err != nil || w == nil {
		return err
	}
	if err := l.WriteEach(ctx, s.key(), []*write.Write{w}); err != nil {
		return err
	}
	if progress != nil && progress.State == StateComplete && s.reported != nil && s.reported.State != StateComplete {
		l.Normalf(s.set, reasonComplete, "All %d pods are updated: %d in place, %d recreated", progress.Updated,
			progress.InPlace, progress.Recreated)
	}
	return nil
}

// isHeld reports whether a Deployment is held.
func (s *snapshot) isHeld() bool {
	d, ok := s.set.(*appsv1.Deployment)
	_, has := s.set.GetAnnotations()[native.HoldKey]
	return ok && has && d.Spec.Paused
}

// explain logs the notes of a pass, and emits once what a user must know.
func (l *loop) explain(ctx context.Context, s *snapshot, p *plan) {
	notes := p.reasons()
	binding.LogNotes(ctx, notes)
	if p.silent {
		return
	}
	hold := ""
	if s.isHeld() {
		hold = s.set.GetAnnotations()[native.HoldKey]
	}
	if l.emitted.Changed(s.key(), hold) {
		l.Normalf(s.set, reasonHeld, "Holds the rollout, so that pods are updated in place. %s", textHeld)
	}
	for _, n := range notes {
		tells := n.Level == note.Blocked || n.Code == inplace.NoteNoGate || n.Code == native.NoteNotHeld
		if tells && l.emitted.First(s.key(), n.Code+n.Text) {
			l.EmitNotes(s.set, n)
		}
	}
}

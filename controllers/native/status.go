package native

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

// StatusKey is the annotation that reports the progress of a rollout, with a Progress as JSON.
const StatusKey = "kruisekit.dev/rollout-status"

// State is how a rollout stands.
type State string

const (
	// StateComplete means that all pods have the newest revision, but for those that the partition keeps, and are ready.
	StateComplete State = "Complete"
	// StateProgressing means that updates go on, or wait for what ends by itself.
	StateProgressing State = "Progressing"
	// StatePaused means that no update begins.
	StatePaused State = "Paused"
	// StateBlocked means that a user must change an object, which the note names.
	StateBlocked State = "Blocked"
	// StateInvalid means that the annotation kruisekit.dev/rollout is wrong.
	StateInvalid State = "Invalid"
)

// Progress is the value of the annotation kruisekit.dev/rollout-status.
type Progress struct {
	// State is how the rollout stands.
	State State `json:"state"`
	// Class is the installation that acts.
	Class string `json:"class,omitempty"`
	// Revision is the name of the newest revision.
	Revision string `json:"revision,omitempty"`
	// Pods is how many pods exist that do not terminate, Ready how many of them are ready, and Updated how many run the
	// newest revision.
	Pods    int32 `json:"pods"`
	Ready   int32 `json:"ready"`
	Updated int32 `json:"updated"`
	// InPlace is how many of the updated pods were changed in place, and Recreated how many were created with the
	// revision.
	InPlace   int32 `json:"inPlace"`
	Recreated int32 `json:"recreated"`
	// InProgress is how many pods are in the middle of an update in place, and Waiting how many wait for their update.
	InProgress int32 `json:"inProgress"`
	Waiting    int32 `json:"waiting"`
	// Note is what the rollout waits for, or why it does not go on.
	Note string `json:"note,omitempty"`
}

// progress is the status of the pods as the last answers left them.
func (p *plan) progress(s *snapshot) *Progress {
	counts := p.pass.Counts()
	progress := &Progress{
		Class: s.rollout.Class, Revision: p.in.Update.Name, Pods: counts.Pods, Ready: counts.Ready,
		InProgress: p.inProgress(),
	}
	if len(s.faults) > 0 {
		progress.Class = s.lastClass()
	}
	if p.in.Update.Name != "" {
		progress.Updated = counts.UpdatedPods
		for _, pod := range p.pass.Pods() {
			if p.in.IsUpdated(pod) && wasChanged(pod) {
				progress.InPlace++
			}
		}
		progress.Recreated = progress.Updated - progress.InPlace
		kept := min(p.in.Scale.Limits.Partition, counts.Pods)
		progress.Waiting = max(counts.Pods-kept-progress.Updated-progress.InProgress, 0)
	}
	progress.State, progress.Note = p.state(s, progress)
	return progress
}

// wasChanged reports whether a pod got the revision in its label by an update in place.
func wasChanged(pod *corev1.Pod) bool {
	state, err := inplace.StateOf(pod, nil)
	return err == nil && state != nil && state.Revision == pod.Labels[revisionLabel]
}

// state is how the rollout stands, and the note to show.
func (p *plan) state(s *snapshot, of *Progress) (State, string) {
	headline, noted := note.Headline(p.reasons())
	text := ""
	if noted && headline.Level != note.Info {
		text = failure.BriefText(headline.Code + ": " + headline.Text)
		if headline.Object != "" && headline.Object != s.set.GetName() {
			text = failure.BriefText(headline.Code + " " + headline.Object + ": " + headline.Text)
		}
	}
	switch {
	case len(s.faults) > 0:
		return StateInvalid, text
	case len(p.notes) > 0 && p.notes[0].Code == native.NoteNotObserved:
		return StateProgressing, text
	case p.isComplete(of):
		return StateComplete, ""
	case noted && headline.Level == note.Blocked:
		return StateBlocked, text
	case s.rollout.Paused:
		return StatePaused, text
	}
	return StateProgressing, text
}

func (p *plan) isComplete(of *Progress) bool {
	return of.Waiting == 0 && of.InProgress == 0 && of.Ready == int32(len(p.in.Scale.Slots)) && of.Ready == of.Pods &&
		(p.deployment == nil || p.deployment.IsSettled())
}

// reasons are the notes of a pass, and the failures that only a user can mend.
func (p *plan) reasons() []note.Note {
	reasons := append([]note.Note{}, p.notes...)
	if len(p.notes) == 0 {
		reasons = append(reasons, p.pass.Notes()...)
	}
	for _, f := range p.pass.Failures() {
		if f.NotInPlace {
			reasons = append(reasons, note.Note{
				Level: note.Blocked, Code: reasonNotInPlace, Object: f.Object, Text: f.Err.Error(),
			})
		}
	}
	return reasons
}

// write returns the write of the status; nil where it stays the same. A note that only words the same reason in another
// way is no change.
func (s *snapshot) write(progress *Progress) (*write.Write, error) {
	if progress == nil {
		if _, ok := s.set.GetAnnotations()[StatusKey]; !ok {
			return nil, nil
		}
		return s.annotate(nil), nil
	}
	if s.reported != nil && s.reported.reason() == progress.reason() {
		return nil, nil
	}
	text, err := json.Marshal(progress)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", StatusKey, err)
	}
	value := string(text)
	return s.annotate(&value), nil
}

// reason is a status with the code of its note alone.
func (p *Progress) reason() Progress {
	of := *p
	of.Note, _, _ = strings.Cut(of.Note, ":")
	return of
}

func (s *snapshot) annotate(value *string) *write.Write {
	set, ok := s.set.(write.Object)
	if !ok {
		return nil
	}
	ops := write.TestUID(set)
	return write.JSON(set, write.Main, append(ops, write.SetAnnotations(set, map[string]*string{StatusKey: value})...)...)
}

// failed joins what failed and may succeed when it is tried again.
func failed(pass *workload.Pass) error {
	var all []workload.Failure
	for _, f := range pass.Failures() {
		if !f.NotInPlace {
			all = append(all, f)
		}
	}
	return workload.Err(all)
}

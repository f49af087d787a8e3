package imagepulljob

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/note"
)

// reasonInvalidSpec is the event of a job that cannot run.
const reasonInvalidSpec = "InvalidSpec"

const (
	// noteRefused is a NodeImage that the API server does not take.
	noteRefused = "NodeImageRefused"
	// noteUnplaced says that the namespace of the copies takes none.
	noteUnplaced = "PullSecretsNotCopied"
)

// told remembers which notes of a job were told in an event: each once in the life of a process.
type told struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]map[string]bool
}

func (t *told) first(job types.NamespacedName, what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs == nil {
		t.jobs = map[types.NamespacedName]map[string]bool{}
	}
	if t.jobs[job] == nil {
		t.jobs[job] = map[string]bool{}
	}
	before := t.jobs[job][what]
	t.jobs[job][what] = true
	return !before
}

func (t *told) forget(job types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, job)
}

// tellNotes passes on what waits, and why. What a user has to mend is an event.
func (p *pass) tellNotes(ctx context.Context, notes []note.Note) {
	notes = append(p.notes, notes...)
	for _, n := range notes {
		switch n.Code {
		case imagepull.NoteNoSecret, imagepull.NoteBadNumber, imagepull.NoteDeadline, noteRefused, noteUnplaced:
			if p.told.first(p.key(), n.Code+" "+n.Object) {
				p.event(corev1.EventTypeWarning, n.Code, n.Object+": "+n.Text)
			}
		}
	}
	if p.options.Explain != nil {
		p.options.Explain(ctx, p.key(), notes)
	}
}

// event records an event of the job. It comes after the write that it is about.
func (p *pass) event(eventType, reason, text string) {
	if p.options.Recorder != nil {
		p.options.Recorder.Event(p.job, eventType, reason, text)
	}
}

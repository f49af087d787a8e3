package podscope

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/note"
)

const (
	reasonUndone = "PodScopeUndone"
	reasonNote   = "PodScopeNote"
)

// report emits the notes when they change.
func (r *Reconciler) report(ctx context.Context, about *configuration, notes []note.Note) {
	if text := fmt.Sprint(notes); text != r.reported {
		r.reported = text
		r.emit(ctx, about, reasonNote, notes)
	}
}

// emit emits notes as events about the configuration of pods; nil where it does not exist.
func (r *Reconciler) emit(ctx context.Context, about *configuration, reason string, notes []note.Note) {
	object := r.form.empty()
	object.SetName(r.options.Configuration)
	if about != nil {
		object.SetUID(about.UID)
	}
	for _, n := range notes {
		log.FromContext(ctx).Info("Found entries that differ from what the objects ask for",
			"reason", n.Code, "object", n.Object, "note", n.Text)
		text := failure.BriefText(fmt.Sprintf("%s: %s", n.Object, n.Text))
		r.options.Recorder.Event(object, corev1.EventTypeWarning, reason, text)
	}
}

// The codes of notes.
const (
	// notePolicy is an entry whose failurePolicy another writer has set. The edit stays.
	notePolicy = "PolicyEdited"
	// noteUndone is a configuration whose entries another writer has changed or removed. They are written again.
	noteUndone = "EntriesEdited"
	// noteCatchAll is an entry of the main configuration that sends all pods, as one of a former installation does.
	noteCatchAll = "CatchAllLeft"
	// noteNoAuthority is a configuration that waits for a CA.
	noteNoAuthority = "NoAuthority"
)

// policies reports entries whose policy was changed by another writer, as in an outage. The edit stays; the note
// explains why pods are created without sidecars, or rejected.
func policies(have *configuration, want []entry) []note.Note {
	var notes []note.Note
	live := entriesOf(have)
	for i := range want {
		at := slices.IndexFunc(live, func(h entry) bool { return h.Name == want[i].Name })
		if at < 0 || ptr.Equal(live[at].FailurePolicy, want[i].FailurePolicy) {
			continue
		}
		notes = append(notes, note.Note{Level: note.Blocked, Code: notePolicy, Object: want[i].Name, Text: fmt.Sprintf(
			"another writer set its failurePolicy to %s, which was %s; the policy stays until the entry is deleted",
			ptr.Deref(live[at].FailurePolicy, ""), ptr.Deref(want[i].FailurePolicy, ""))})
	}
	return notes
}

// catchAlls reports entries of the main configuration that send all pods: a former installation has left them there,
// with these names. They fail closed, and send the pods of our entries twice.
func catchAlls(main *configuration, disruptions bool) []note.Note {
	names, kind := []string{"mpod.kb.io"}, "mutatingwebhookconfiguration"
	what := "sends new pods, each a second time, and rejects them while no replica answers"
	if disruptions {
		names, kind = []string{"vpod.kb.io", "vpodeviction.kb.io"}, "validatingwebhookconfiguration"
		what = "sends updates, deletions or evictions of all pods, and rejects them while no replica answers"
	}
	var notes []note.Note
	for i, e := range entriesOf(main) {
		if !slices.Contains(names, e.Name) {
			continue
		}
		notes = append(notes, note.Note{Level: note.Blocked, Code: noteCatchAll, Object: main.Name, Text: fmt.Sprintf(
			`entry %s of a former installation still %s; remove it: kubectl patch %s %s --type=json -p `+
				`'[{"op":"test","path":"/webhooks/%d/name","value":"%s"},{"op":"remove","path":"/webhooks/%d"}]'`,
			e.Name, what, kind, main.Name, i, e.Name, i)})
	}
	return notes
}

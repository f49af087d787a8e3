package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/demo/screen"
)

// A reason is shown long enough to be read, and not when it is not true any more at the end.
func TestNotes(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	n := &Notes{Now: func() time.Time { return now }}
	hear := func(notes ...note.Note) { n.Hear(t.Context(), types.NamespacedName{}, notes) }
	shows := func(why string, end bool, want ...screen.Note) {
		t.Helper()
		if diff := cmp.Diff(want, n.at(end)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
	limited := func(text string) note.Note { return note.Note{Code: scale.NoteUpdateLimited, Text: text} }
	image := func(pod, text string) note.Note {
		return note.Note{Code: inplace.NoteImage, Object: pod, Text: text}
	}
	shows("nobody has said anything", false)

	hear(limited("9 wait"), image("a", "pulls"), image("b", "starts"), image("c", "pulls"), note.Note{
		Code: scale.NoteNotAvailable, Text: "6 wait",
	})
	pulls, starts := screen.Note{Code: inplace.NoteImage, Text: "2 pods: pulls"}, screen.Note{
		Code: inplace.NoteImage, Text: "1 pod: starts",
	}
	shows("what is said of many is said once; what the bars show is not said", false,
		screen.Note{Code: scale.NoteUpdateLimited, Text: "9 wait"}, pulls, starts)

	now = now.Add(linger / 2)
	hear(note.Note{Code: scale.NotePartition, Text: "15 wait"}, limited("3 wait"))
	three, partition := screen.Note{Code: scale.NoteUpdateLimited, Text: "3 wait"}, screen.Note{
		Code: scale.NotePartition, Text: "15 wait",
	}
	shows("what was said lately stays", false, partition, three, pulls, starts)
	shows("but not at the end", true, partition, three)

	now = now.Add(linger / 2)
	shows("nor for long; the last pass stays for as long as nothing else happens", false, partition, three)
	now = now.Add(time.Hour)
	shows("however long", false, partition, three)
	hear()
	shows("what an hour ago was true is not lately", false)
	n.forget()
	shows("a new step begins with nothing", false)
}

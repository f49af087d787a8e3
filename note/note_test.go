package note_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/note"
)

func TestHeadline(t *testing.T) {
	info := note.Note{Code: "Partition", Text: "2 instances stay"}
	waits := note.Note{Level: note.Waiting, Code: "UpdateLimited", Text: "3 instances wait"}
	blocked := func(object string) note.Note {
		return note.Note{Level: note.Blocked, Code: "ImagePull", Object: object, Text: "cannot pull"}
	}
	crash := note.Note{Level: note.Blocked, Code: "Crash", Object: "a", Text: "crashes"}
	cases := map[string]struct {
		notes []note.Note
		want  note.Note
		none  bool
	}{
		"nothing: no note is no headline":                   {nil, note.Note{}, true},
		"only info: what the user asked for is no headline": {[]note.Note{info}, note.Note{}, true},
		"waiting: a wait comes before an explanation":       {[]note.Note{info, waits}, waits, false},
		"blocked: a block comes before any number of waits": {[]note.Note{waits, waits, crash}, crash, false},
		"the most common: most pods have this reason": {
			notes: []note.Note{crash, blocked("c"), blocked("b")}, want: blocked("b"),
		},
		"tie: the code decides between equals":           {[]note.Note{blocked("a"), crash}, crash, false},
		"unknown level: an unknown level counts as info": {[]note.Note{{Level: "New", Code: "X"}}, note.Note{}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := note.Headline(c.notes)
			if diff := cmp.Diff(c.want, got); diff != "" || ok == c.none {
				t.Errorf("%v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// The order of the notes does not matter, and the given slice stays as it is.
func TestHeadlineOrder(t *testing.T) {
	var notes []note.Note
	for i := range 40 {
		level := []note.Level{note.Info, note.Waiting, note.Blocked}[i%3]
		notes = append(notes, note.Note{Level: level, Code: fmt.Sprint("C", i%5), Object: fmt.Sprint("p", i%7)})
	}
	want, _ := note.Headline(notes)
	for seed := range uint64(100) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
		before := fmt.Sprint(notes)
		if got, _ := note.Headline(notes); got != want {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		if fmt.Sprint(notes) != before {
			t.Fatalf("seed %d: the notes changed", seed)
		}
	}
}

func ExampleHeadline() {
	headline, ok := note.Headline([]note.Note{
		{Level: note.Waiting, Code: "UpdateLimited", Text: "3 instances wait to be updated"},
		{Level: note.Blocked, Code: "ImagePullFailed", Object: "web-1", Text: "container app cannot pull image web:2"},
	})
	fmt.Println(ok, headline)
	// Output: true ImagePullFailed web-1: container app cannot pull image web:2
}

func ExampleToCondition() {
	n := note.Note{
		Level: note.Blocked, Code: "ImagePullFailed", Object: "web-1", Text: "container app cannot pull image web:2",
	}
	c := note.ToCondition("Stalled", n, 7, time.Unix(0, 0))
	fmt.Println(c.Type, c.Status == metav1.ConditionTrue, c.Reason)
	fmt.Println(c.Message)
	// Output:
	// Stalled true ImagePullFailed
	// web-1: container app cannot pull image web:2
}

// A note about the whole workload names no object.
func TestText(t *testing.T) {
	for _, c := range []struct {
		note         note.Note
		line, phrase string
	}{
		{note.Note{Code: "Paused", Text: "updates are paused"}, "Paused: updates are paused", "updates are paused"},
		{note.Note{Code: "Crash", Object: "web-0", Text: "crashes"}, "Crash web-0: crashes", "web-0: crashes"},
	} {
		if got := c.note.String(); got != c.line {
			t.Errorf("line: %q, want %q", got, c.line)
		}
		if got := c.note.Message(); got != c.phrase {
			t.Errorf("message: %q, want %q", got, c.phrase)
		}
	}
}

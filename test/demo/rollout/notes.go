package rollout

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/demo/screen"
)

// linger is how long a reason can be read at least: a pass may follow the other within milliseconds.
const linger = 700 * time.Millisecond

// Notes is what a reconciler says of its last passes, made short enough to be shown.
type Notes struct {
	// Now is the clock.
	Now func() time.Time

	mu    sync.Mutex
	pass  int
	heard []heard // of the last pass first
}

// heard is what was said under one code, when, and in which pass.
type heard struct {
	code  string
	texts []string
	at    time.Time
	pass  int
}

// Hear takes the notes of a pass, as cloneset.Options.Explain gives them.
func (n *Notes) Hear(_ context.Context, _ types.NamespacedName, notes []note.Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pass++
	var all []heard
	for _, g := range grouped(notes) {
		g.at, g.pass = n.Now(), n.pass
		all = append(all, g)
	}
	for _, old := range n.heard {
		if n.Now().Sub(old.at) >= linger {
			continue
		}
		if !slices.ContainsFunc(all, func(h heard) bool { return h.code == old.code }) {
			all = append(all, old)
		}
	}
	n.heard = all
}

// at gives what was heard lately, or, of a rollout that has come to its end, what the last pass has said.
func (n *Notes) at(end bool) []screen.Note {
	n.mu.Lock()
	defer n.mu.Unlock()
	var shown []screen.Note
	for _, h := range n.heard {
		if h.pass == n.pass || !end && n.Now().Sub(h.at) < linger {
			for _, text := range h.texts {
				shown = append(shown, screen.Note{Code: h.code, Text: text})
			}
		}
	}
	return shown
}

// forget drops all notes.
func (n *Notes) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = nil
}

// seen are codes of notes that say nothing which the numbers of pods do not say.
func seen(said note.Note) bool {
	return said.Code == scale.NoteNotAvailable || said.Code == scale.NoteChosen
}

// grouped says once what is said of many pods.
func grouped(notes []note.Note) []heard {
	var all []heard
	notes = slices.DeleteFunc(slices.Clone(notes), seen)
	counts := map[[2]string]int{}
	for _, said := range notes {
		counts[[2]string{said.Code, said.Text}]++
	}
	for _, said := range notes {
		id := [2]string{said.Code, said.Text}
		n := counts[id]
		if n == 0 {
			continue // said
		}
		counts[id] = 0
		text := said.Text
		switch {
		case said.Object != "" && n == 1:
			text = "1 pod: " + text
		case said.Object != "":
			text = fmt.Sprintf("%d pods: %s", n, text)
		}
		if last := len(all) - 1; last >= 0 && all[last].code == said.Code {
			all[last].texts = append(all[last].texts, text)
			continue
		}
		all = append(all, heard{code: said.Code, texts: []string{text}})
	}
	return all
}

package cloneset

import (
	"cmp"
	"context"
	"slices"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
)

// Codes of notes beside those of the packages scale and inplace. The object of each is a pod.
const (
	// NoteNotInPlace is a pod that is updated by a new one, because the change cannot be made in it.
	NoteNotInPlace = "NotInPlace"
	// NoteRefused is a pod that Options.MayUpdate does not let be updated yet. Those after it in the plan wait with it.
	NoteRefused = "UpdateRefused"
)

// note keeps a note for the end of the pass.
func (a *act) note(n note.Note) {
	if a.options.Explain == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, n)
}

// noteWaits keeps what a pod waits for.
func (a *act) noteWaits(action inplace.Action) {
	if action.Verdict != inplace.Wait {
		return
	}
	for _, n := range action.Notes {
		a.note(n)
	}
}

// explain hands on the notes of the plan, and then those of pods by name.
func (a *act) explain(ctx context.Context) {
	if a.options.Explain == nil {
		return
	}
	slices.SortFunc(a.notes, func(x, y note.Note) int {
		return cmp.Or(cmp.Compare(x.Object, y.Object), cmp.Compare(x.Code, y.Code), cmp.Compare(x.Text, y.Text))
	})
	a.options.Explain(ctx, a.key(), slices.Concat(a.plan.scale.Notes, slices.Compact(a.notes)))
}

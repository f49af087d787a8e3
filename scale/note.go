package scale

import (
	"fmt"

	"github.com/kruisekit/kruisekit/note"
)

// Codes of notes about one instance: why it is restored or deleted.
const (
	// NoteRestored is an instance that was about to be deleted, and is wanted again.
	NoteRestored = "Restored"
	// NoteReleased is an instance to delete because its hook no longer holds it.
	NoteReleased = "Released"
	// NoteChosen is an instance to delete because the user chose it.
	NoteChosen = "Chosen"
	// NoteScaleIn is an instance to delete because there are too many, and the text gives the reason.
	NoteScaleIn = "ScaleIn"
	// NoteFinished is an instance to delete because its pods have finished.
	NoteFinished = "Finished"
	// NoteNoSlot is an instance to delete because no slot has its name.
	NoteNoSlot = "NoSlot"
	// NoteOutOfOrder is an instance that all that come after it wait for.
	NoteOutOfOrder = "OutOfOrder"
)

// Codes of notes about all instances: what the rest waits for.
const (
	// NoteScaleUpLimited means that missing instances are not created yet.
	NoteScaleUpLimited = "ScaleUpLimited"
	// NoteDeleteLimited means that instances are not deleted yet, because too many would be unavailable.
	NoteDeleteLimited = "DeleteLimited"
	// NoteWaitingForDeletion means that surplus instances stay until deletions that began before are done.
	NoteWaitingForDeletion = "WaitingForDeletion"
	// NoteHooked means that instances wait for a hook to release them.
	NoteHooked = "Hooked"
	// NoteUpdateLimited means that instances are not updated yet, because too many would be unavailable.
	NoteUpdateLimited = "UpdateLimited"
	// NotePaused means that instances are not updated because updates are paused.
	NotePaused = "Paused"
	// NoteOnDelete means that instances are not updated because the user deletes them for that.
	NoteOnDelete = "OnDelete"
	// NotePartition gives how many instances the partition keeps at the old revision. The note is also given where nothing
	// is left to do: it explains a rollout that stands still.
	NotePartition = "Partition"
	// NoteNotAvailable means that there is nothing to do but wait until instances are available.
	NoteNotAvailable = "NotAvailable"
	// NotePriorityIgnored means that a part of the priority strategy cannot be read.
	NotePriorityIgnored = "PriorityIgnored"
)

func levelOf(code string) note.Level {
	switch code {
	case NoteOutOfOrder, NoteScaleUpLimited, NoteDeleteLimited, NoteWaitingForDeletion, NoteHooked, NoteUpdateLimited,
		NoteNotAvailable:
		return note.Waiting
	}
	return note.Info
}

func (p *planner) note(code, object, text string) {
	p.plan.Notes = append(p.plan.Notes, note.Note{Level: levelOf(code), Code: code, Object: object, Text: text})
}

// noteWaiting notes that n instances wait, if there are any. why continues the sentence.
func (p *planner) noteWaiting(code string, n int, why string) {
	switch {
	case n == 1:
		p.note(code, "", "1 instance waits "+why)
	case n > 1:
		p.note(code, "", fmt.Sprintf("%d instances wait %s", n, why))
	}
}

// noteKept notes how many of some instances the partition keeps, if it keeps any.
func (p *planner) noteKept(among []*member) {
	old := 0
	for _, m := range among {
		if m != nil && !m.pinned && !m.Updated && !m.preparingDelete && !m.MarkedForDeletion && !m.Terminating {
			old++
		}
	}
	p.noteWaiting(NotePartition, min(old, int(p.in.Limits.Partition)), "at the old revision, as the partition says")
}

// spent describes how much of a budget is used.
func spent(unavailable, most int32) string {
	return fmt.Sprintf("(unavailable: %d, at most: %d)", unavailable, max(most, 0))
}

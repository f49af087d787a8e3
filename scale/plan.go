package scale

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

// planner makes one plan.
type planner struct {
	in      *Input
	members []*member
	pinned  sets.Set[string]
	plan    Result
}

// Plan returns what brings the instances that exist one step closer to those that are wanted. The error is an
// *InputError.
func Plan(in Input) (Result, error) {
	if err := in.check(); err != nil {
		return Result{}, err
	}
	if in.Slots != nil {
		in.Limits.Replicas = int32(len(in.Slots))
	}
	in.Limits = sane(in.Limits)
	if in.Hooks == nil {
		in.Hooks = &kruise.Lifecycle{}
	}
	p := &planner{in: &in, pinned: sets.New(in.Pinned...)}
	p.observe()
	names, err := p.byName()
	if err != nil {
		return Result{}, err
	}
	if in.Slots == nil {
		p.planCount()
	} else {
		s, err := p.assign(names)
		if err != nil {
			return Result{}, err
		}
		s.planSlots()
	}
	p.conclude()
	return p.plan, nil
}

// sane keeps numbers that no API allows from turning into their opposite where they are added.
func sane(l Limits) Limits {
	l.Replicas = max(l.Replicas, 0)
	l.Partition = min(max(l.Partition, 0), l.Replicas)
	l.MaxUnavailable = max(l.MaxUnavailable, 0)
	l.MaxSurge = min(max(l.MaxSurge, 0), math.MaxInt32-l.Replicas)
	if l.MaxUnavailableScaling != nil {
		l.MaxUnavailableScaling = ptr.To(max(*l.MaxUnavailableScaling, 0))
	}
	return l
}

// observe looks at every pod once.
func (p *planner) observe() {
	all, none := make([]member, len(p.in.Instances)), &corev1.Pod{}
	p.members = make([]*member, 0, len(all))
	for i := range p.in.Instances {
		m := &all[i]
		*m = newMember(&p.in.Instances[i], p.in, none)
		m.pinned = p.pinned.Has(m.Name)
		if m.Terminating && p.in.Slots == nil {
			continue
		}
		p.members = append(p.members, m)
	}
}

// byName returns the members by name.
func (p *planner) byName() (map[string]*member, error) {
	names := make(map[string]*member, len(p.members))
	for _, m := range p.members {
		if names[m.Name] != nil || m.Name == "" {
			return nil, &InputError{"Instances", "must have a name each"}
		}
		names[m.Name] = m
	}
	return names, nil
}

// idle reports whether nothing is planned that changes the number of instances.
func (p *planner) idle() bool {
	return len(p.plan.Restore) == 0 && len(p.plan.Create) == 0 && len(p.plan.Delete) == 0
}

// conclude sets when to look again, and notes what for.
func (p *planner) conclude() {
	unavailable, terminating := 0, 0
	for _, m := range p.members {
		switch {
		case m.Terminating:
			terminating++
		case !m.available && !m.preparingDelete:
			unavailable++
		}
		if m.wait > 0 && (p.plan.RequeueAfter == 0 || m.wait < p.plan.RequeueAfter) {
			p.plan.RequeueAfter = m.wait
		}
	}
	if p.idle() && len(p.plan.Update) == 0 {
		p.noteWaiting(NoteNotAvailable, unavailable, "to become available")
		p.noteWaiting(NoteWaitingForDeletion, terminating, "to be gone")
	}
}

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

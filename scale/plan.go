package scale

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

// planner makes one plan.
type planner struct {
	in      *Input
	members []*member
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
	p := &planner{in: &in}
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
		if m != nil && !m.Updated && !m.preparingDelete && !m.MarkedForDeletion && !m.Terminating {
			old++
		}
	}
	p.noteWaiting(NotePartition, min(old, int(p.in.Limits.Partition)), "at the old revision, as the partition says")
}

// spent describes how much of a budget is used.
func spent(unavailable, most int32) string {
	return fmt.Sprintf("(unavailable: %d, at most: %d)", unavailable, max(most, 0))
}

// Instance is what is scaled as one: a pod, or several pods that live and die together, as a leader and its workers.
type Instance struct {
	// Name identifies the instance, and breaks ties. It is the name of the pod, where there is one.
	Name string
	// Pods that exist and are neither finished nor terminating. The first stands for all where a strategy looks at
	// labels or nodes; else an instance is as good as its weakest pod.
	Pods []*corev1.Pod
	// Size is how many pods make the instance whole; 0 means 1. An instance that is not whole is not available.
	Size int
	// Updated means that it has the update revision.
	Updated bool
	// MarkedForDeletion means that the user chose it to be deleted.
	MarkedForDeletion bool
	// NotNow keeps the plan from updating the instance, because its last update was rejected. Others take its turn.
	NotNow bool
	// Outdated means that something besides its pods is not what the update revision asks for, so that it is to be updated
	// although Updated. Impaired means that something besides its pods keeps it from serving, as a volume that grows: it
	// spends of the budget of updates. Both are for Slots only.
	Outdated, Impaired bool
	// Terminating means that its deletion cannot be undone. It only holds its slot until it is gone and left out;
	// without slots it does not count.
	Terminating bool
	// Finished means that its pods have finished, so that nothing but their deletion is left, which has not begun. Such an
	// instance is Terminating. With InOrder, the plan deletes it in its turn; else the caller deletes it at once.
	Finished bool
}

// Input is a workload as its controller sees it. A field that the mode ignores must have its zero value, else Plan
// returns an *InputError: with Slots these are NoRollback and ExcludePreparingDelete of the limits, and SpreadKeys;
// Scatter with Slots needs a Priority, and MaxSurge needs SurgeSlots.
type Input struct {
	// Now is the time of the decision.
	Now time.Time
	// Instances that exist. Their order does not matter.
	Instances []Instance
	// Limits of the workload. Where Slots are given, Replicas is how many of them there are.
	Limits Limits
	// MinReadySeconds is how long a pod is Ready before it counts as available.
	MinReadySeconds int32
	// Hooks of the workload; nil when it has none.
	Hooks *kruise.Lifecycle
	// Keys are the labels, annotations and readiness gates of the pods; nil for those of OpenKruise. A pass of package
	// workload sets those of its Policy.
	Keys *kruise.Keys
	// Updates is whether instances are updated now.
	Updates Updates
	// UpdateOnly plans updates only, for when scaling failed and updates are to go on.
	UpdateOnly bool
	// NoCreate plans as if nothing were missing, for when creations are rejected and what they wait for may be what is to
	// be deleted; with Slots and without InOrder only. Missing instances still count as unavailable.
	NoCreate bool
	// PreparingUpdateIsUpdated counts instances that a hook holds before their update as updated ones while scaling.
	PreparingUpdateIsUpdated bool
	// Priority and Scatter order updates. With slots, a Priority that is not nil, even an empty one, lets any slot keep
	// the old revision, where without it the first ones do.
	Priority *kruise.UpdatePriorityStrategy
	Scatter  kruise.UpdateScatterStrategy
	// UnavailableFirst updates instances that are not available before all others, so that a broken revision is
	// replaced where it is broken.
	UnavailableFirst bool
	// SpreadKeys are the topology keys of the template's spread constraints. Without any, instances are kept on
	// different nodes.
	SpreadKeys []string
	// NodeLabels are the labels of nodes by name; with SpreadKeys only.
	NodeLabels map[string]map[string]string
	// Slots are the names that instances are to have, in the order of their creation: the ordinals of a StatefulSet,
	// the nodes of a DaemonSet. Nil where one instance is as good as another.
	Slots []string
	// SurgeSlots are the names of instances beyond Slots, in the order of their creation: at most MaxSurge of them exist,
	// and only while a rollout needs them. A name that is in Slots, too, is a slot. The names should stay the same when
	// the limits change: an instance whose name is in neither list is deleted at once. With Slots and without InOrder
	// only.
	SurgeSlots []string
	// InOrder creates a slot only when those before it are available, and deletes from the end, one at a time; with Slots
	// only.
	InOrder bool
}

// Updates is whether instances are updated.
type Updates string

const (
	// UpdatesRun moves instances to their revision. It is the default.
	UpdatesRun Updates = ""
	// UpdatesPaused keeps instances as they are for now, and makes no surplus ones.
	UpdatesPaused Updates = "Paused"
	// UpdatesOnDelete leaves instances as they are until they are deleted.
	UpdatesOnDelete Updates = "OnDelete"
)

// Result is what to do now. Restore, Create and Delete come first; Update is planned only where there is nothing of
// them to do, so that a plan can be carried out as a whole.
type Result struct {
	// Restore are instances that were to be deleted, that a hook still holds, and that are wanted again.
	Restore []Instance
	// Create are the instances to create.
	Create []Creation
	// Delete are the instances to delete, unless a hook holds them.
	Delete []Instance
	// Update are the instances to move to the other revision, unless a hook holds them: forward, or, with Backward, back.
	Update []Instance
	// Backward means that Update goes from the update revision to the current one.
	Backward bool
	// Difference is what the plan was made from, of all there is to do; zero where Slots are given.
	Difference Difference
	// RequeueAfter is when the plan may change although nothing else does; 0 for never.
	RequeueAfter time.Duration
	// Notes explain the plan.
	Notes []note.Note
}

// Creation is an instance to create.
type Creation struct {
	// Slot is its name, where slots are given.
	Slot string
	// Updated means that it gets the update revision, else the current one.
	Updated bool
}

// InputError reports a field of the input that has no effect in the chosen mode. Plan returns the error instead of
// ignoring what the caller asked for.
type InputError struct {
	// Field is the path of the field in Input.
	Field string
	// Reason is what the field must be.
	Reason string
}

// Error returns the field and the reason.
func (e *InputError) Error() string { return e.Field + " " + e.Reason }

// check returns an *InputError for the first field that the mode ignores.
func (in *Input) check() error { //nolint:gocyclo // a table of conditions
	slots, ordered, l := in.Slots != nil, in.InOrder && in.Slots != nil, &in.Limits
	for _, f := range []struct {
		field, reason string
		ignored       bool
	}{
		{"NodeLabels", "must be empty without SpreadKeys", len(in.NodeLabels) > 0 && len(in.SpreadKeys) == 0},
		{"InOrder", "must be false without Slots", in.InOrder && !slots},
		{"NoCreate", "must be false without Slots", in.NoCreate && !slots},
		{"SurgeSlots", "must be empty without Slots", len(in.SurgeSlots) > 0 && !slots},
		{
			"Limits.Replicas", fmt.Sprintf("must be 0 or the number of Slots, %d", len(in.Slots)),
			slots && l.Replicas != 0 && int(l.Replicas) != len(in.Slots),
		},
		{"Limits.MaxSurge", "must be 0 with InOrder", l.MaxSurge != 0 && ordered},
		{"SurgeSlots", "must be empty with InOrder", len(in.SurgeSlots) > 0 && ordered},
		{
			"Limits.MaxSurge", "must be 0 with Slots and without SurgeSlots",
			slots && l.MaxSurge != 0 && len(in.SurgeSlots) == 0,
		},
		{"Limits.NoRollback", "must be false with Slots", slots && l.NoRollback},
		{"Limits.ExcludePreparingDelete", "must be false with Slots", slots && l.ExcludePreparingDelete},
		{"Limits.MaxUnavailableScaling", "must be nil with InOrder", l.MaxUnavailableScaling != nil && ordered},
		{"NoCreate", "must be false with InOrder", in.NoCreate && ordered},
		{"SpreadKeys", "must be empty with Slots", slots && len(in.SpreadKeys) > 0},
		{"Scatter", "must be empty with Slots and without Priority", slots && len(in.Scatter) > 0 && in.Priority == nil},
	} {
		if f.ignored {
			return &InputError{f.field, f.reason}
		}
	}
	return nil
}

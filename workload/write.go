package workload

import (
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/write"
)

// Action is what a write does for its workload, for events and logs.
type Action string

const (
	// ActionStore makes a revision the newest, or asks who has its name: see Input.Store.
	ActionStore Action = "Store"
	// ActionTrim deletes an old revision.
	ActionTrim Action = "Trim"
	// ActionObserve asks for the pod that has the name of a new pod.
	ActionObserve Action = "Observe"
	// ActionFirst is a write of the caller's, from Input.First.
	ActionFirst Action = "First"
	// ActionCreate creates a pod, or an object that the pod needs.
	ActionCreate Action = "Create"
	// ActionPrepare is a write of the caller's, from Input.Before.
	ActionPrepare Action = "Prepare"
	// ActionAhead is a write of the caller's, from Input.Ahead.
	ActionAhead Action = "Ahead"
	// ActionDelete deletes a pod.
	ActionDelete Action = "Delete"
	// ActionMove changes the lifecycle state of a pod, or what keeps the pod not ready for a hook.
	ActionMove Action = "Move"
	// ActionContinue is a step of an update that has begun, or opens the readiness gate.
	ActionContinue Action = "Continue"
	// ActionUnready takes a pod out of traffic before its update.
	ActionUnready Action = "Unready"
	// ActionUpdate changes a pod to another revision.
	ActionUpdate Action = "Update"
	// ActionMark marks a pod to be deleted and created again.
	ActionMark Action = "Mark"
	// ActionAsk writes nothing: it asks whether the pods in Asked may be disrupted. Answer takes nil for all of them,
	// a *RefusedError for the first ones or none, and another error where the question could not be decided. See
	// Input.Ask.
	ActionAsk Action = "Ask"
	// ActionLabel adds missing labels of the pod's revision.
	ActionLabel Action = "Label"
)

// Write is one write of a pass. Send it, and give the answer to Pass.Answer.
type Write struct {
	write.Write

	// Action is what the write does.
	Action Action
	// Instance is the name of the instance; empty for writes of the caller and for new instances.
	Instance string
	// Pod is the pod that the write is about: to create, as it is before a change, or whose object is deleted. Nil for
	// writes of the caller.
	Pod *corev1.Pod
	// Revision that an update goes to, or that a new pod gets.
	Revision string
	// Asked are the pods of a question, in the order of their updates; nil for a write.
	Asked []*corev1.Pod

	of *instance
	// asked are the instances of a question.
	asked []*instance
	// refused is the answer to the creation that a question is about.
	refused error
	// member of the instance that is written; rest are the objects to create after this one.
	member *member
	rest   []write.Object
	// harmless means that the pod stays available.
	harmless bool
	repeat   repeatKey
}

// String returns what the write does to which object, for errors.
func (w *Write) String() string {
	verb := "patch"
	switch w.Action {
	case ActionAsk:
		return fmt.Sprintf("ask for the update of %d pods, pod %s first", len(w.Asked), w.Asked[0].Name)
	case ActionCreate, ActionObserve:
		verb = "create"
	case ActionDelete, ActionTrim:
		verb = "delete"
	case ActionUpdate, ActionUnready:
		verb = "update in place"
	case ActionMark:
		verb = "mark for deletion"
	}
	return fmt.Sprintf("%s %s %s", verb, w.Kind(), w.Object.GetName())
}

// Failure is what went wrong with one object. It stopped nothing else.
type Failure struct {
	// Write that was rejected; nil where the plan itself failed for the instance.
	Write *Write
	// Pod or other object, by name.
	Object string
	// Err is why.
	Err error
	// Scaling means that the failure is about the number of pods, not about their updates.
	Scaling bool
	// Ahead means that the failure is one of Input.Ahead.
	Ahead bool
	// NotInPlace means that the strategy allows updates in place only, and the change is not possible in place.
	NotInPlace bool
}

const (
	// freeRepeats is how often the same write is made to a pod without a pause.
	freeRepeats = 3
	// freeOutdated is how many passes in a row may have outdated writes before the pauses between them grow.
	freeOutdated = 10
	// longestPause bounds the pause before the same write is made again.
	longestPause = time.Minute
)

// Repeats are the writes that recent passes have made to the pods of a workload. A write is made again where another
// writer reverts it, and less and less often: at most once a minute. The zero value knows no writes. Keep one value for
// each workload; nothing but the pauses is lost with it.
type Repeats struct {
	made map[repeatKey]repeat
	// outdated is how many passes in a row had writes that were decided upon older objects.
	outdated int
}

// repeatKey identifies a write whatever its time, on the way to one revision. The same step of the next release is
// another write.
type repeatKey struct {
	pod    types.UID
	digest uint64
}

// repeat is how often a write was made, and when last.
type repeat struct {
	times int
	last  time.Time
}

// pause is how long a write is not made again after the last time.
func (r repeat) pause() time.Duration {
	if r.times < freeRepeats {
		return 0
	}
	return min(time.Second<<min(r.times-freeRepeats, 10), longestPause)
}

// isRecent reports whether the next write of the same kind counts as a repetition.
func (r repeat) isRecent(now time.Time) bool { return now.Sub(r.last) < longestPause+r.pause() }

// repeats are those of a pass: the known ones are only read.
type repeats struct {
	known Repeats
	// revision is the name of the update revision.
	revision string
	own      map[repeatKey]repeat
}

// pause returns how long a write has to wait; zero for not at all. It prepares the write to be recorded.
func (r *repeats) pause(w *Write, now time.Time) time.Duration {
	if w.Verb != write.Patch {
		return 0
	}
	data, err := w.Data()
	if err != nil {
		return 0 // sending it fails in the same way
	}
	w.Body, w.repeat = write.Bytes(data), repeatKey{w.Object.GetUID(), r.digest(w, data)}
	before := r.of(w.repeat)
	if !before.isRecent(now) {
		return 0
	}
	return max(before.last.Add(before.pause()).Sub(now), 0)
}

// of returns what is known of a write.
func (r *repeats) of(key repeatKey) repeat {
	if own, ok := r.own[key]; ok {
		return own
	}
	return r.known.made[key]
}

// made records a write that has succeeded.
func (r *repeats) made(w *Write, now time.Time) {
	if w.repeat == (repeatKey{}) {
		return
	}
	next := r.of(w.repeat)
	if !next.isRecent(now) {
		next.times = 0
	}
	next.times, next.last = next.times+1, now
	if r.own == nil {
		r.own = map[repeatKey]repeat{}
	}
	r.own[w.repeat] = next
}

// Repeats returns the recent writes, for Input.Repeats of the next pass.
func (p *Pass) Repeats() Repeats {
	r := Repeats{made: map[repeatKey]repeat{}}
	maps.Copy(r.made, p.repeats.known.made)
	maps.Copy(r.made, p.repeats.own)
	maps.DeleteFunc(r.made, func(_ repeatKey, is repeat) bool { return !is.isRecent(p.now) })
	if p.outdated {
		r.outdated = p.in.Repeats.outdated + 1
	}
	return r
}

// outdatedPause is when to observe again after a pass with outdated writes. After many of them in a row another writer
// does not stop, or the cache stands still.
func (r Repeats) outdatedPause() time.Duration {
	return min(retryOutdated<<min(max(r.outdated-freeOutdated, 0), 10), longestPause)
}

// times are how a patch writes times.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// digest identifies what a patch does, whatever the times in it.
func (r *repeats) digest(w *Write, data []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.revision + "/" + w.Subresource + "/"))
	_, _ = h.Write(times.ReplaceAll(data, nil))
	return h.Sum64()
}

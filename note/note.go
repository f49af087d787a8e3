package note

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Level orders notes by what they mean for the reader.
type Level string

const (
	// Info explains what a plan does, or what it leaves as the user asked. It is the default.
	Info Level = ""
	// Waiting is a step that goes on by itself: when a pod becomes available, a budget has room, or a time has passed.
	Waiting Level = "Waiting"
	// Blocked is a step that does not go on until a user or another controller changes an object: an image that cannot be
	// pulled, a resource request that no node can satisfy.
	Blocked Level = "Blocked"
)

// rank of a level. A level that this package does not know counts as Info.
func (l Level) rank() int { return max(slices.Index([]Level{Info, Waiting, Blocked}, l), 0) }

// Note is one reason.
type Note struct {
	// Level orders notes; the zero value is Info.
	Level Level
	// Code is the reason in one word, in CamelCase, for events and conditions. Each package lists its codes.
	Code string
	// Object is the name of the object that the note is about. It is empty where the note is about the whole workload.
	Object string
	// Text is one sentence, without a full stop.
	Text string
}

// String returns the note as one line of a log.
func (n Note) String() string {
	if n.Object == "" {
		return n.Code + ": " + n.Text
	}
	return n.Code + " " + n.Object + ": " + n.Text
}

// Headline returns the note that explains best why a workload does not go on: of the highest level, the code that most
// notes have, and of these the first note by object. It reports false where every note is Info.
func Headline(notes []Note) (Note, bool) {
	type reason struct {
		level int
		code  string
	}
	counts := map[reason]int{}
	for _, n := range notes {
		counts[reason{n.Level.rank(), n.Code}]++
	}
	var first Note
	for _, n := range notes {
		level, than := n.Level.rank(), first.Level.rank()
		if cmp.Or(
			cmp.Compare(level, than), cmp.Compare(counts[reason{level, n.Code}], counts[reason{than, first.Code}]),
			cmp.Compare(first.Code, n.Code), cmp.Compare(first.Object, n.Object), cmp.Compare(first.Text, n.Text),
		) > 0 && level > 0 {
			first = n
		}
	}
	return first, first.Level.rank() > 0
}

// ToCondition returns a condition with status True, the note's code as its reason and its text, with the object's name
// before it, as its message. Use it with meta.SetStatusCondition, which keeps the transition time of an older
// condition.
func ToCondition(conditionType string, n Note, generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now), Reason: n.Code, Message: n.Message(),
	}
}

// Message returns the text with the object's name before it.
func (n Note) Message() string {
	if n.Object == "" {
		return n.Text
	}
	return fmt.Sprintf("%s: %s", n.Object, n.Text)
}

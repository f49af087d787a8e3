package conditions

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/note"
)

// Stalled is the type of the condition that reports why a workload stands still: True where an object must change
// first, Unknown where the workload waits. The reference has no such condition; the name is the one that tools for
// status know.
const Stalled = "Stalled"

// StalledAfter is how long a workload waits for something that may come by itself before that is reported.
const StalledAfter = time.Minute

// Wait is what a workload has been waiting for, by the code of its headline, and since when. The reconciler keeps it
// from pass to pass. The zero value waits for nothing.
type Wait struct {
	For   string
	Since time.Time
	// Done is how much was done when the wait began.
	Done int32
}

// Next is the wait after a pass with this headline. done is how much is done, as the number of updated pods: a rollout
// that takes one pod after the other does not stand still.
func (w Wait) Next(headline note.Note, done int32, now time.Time) Wait {
	if w.For == headline.Code && done <= w.Done {
		return w
	}
	return Wait{For: headline.Code, Since: now, Done: done}
}

// Stalling is what Stall decides upon.
type Stalling struct {
	Now time.Time
	// Headline of the pass; its zero value where nothing stands still.
	Headline note.Note
	// Wait is the one after this pass.
	Wait Wait
	// SameRevision means that the workload goes to the same revision as when the condition was set.
	SameRevision bool
}

// Stall reports the headline of a pass in the condition Stalled: at once where the workload is blocked until an object
// changes, and after a while where it waits. The text stays as long as the reason and the revision do, so that a reason
// costs one write. It returns when to look again; zero for never.
func Stall(l *List, s Stalling) time.Duration {
	old := l.Find(Stalled)
	c := Condition{Type: Stalled, Status: corev1.ConditionTrue, Reason: s.Headline.Code, Message: s.Headline.Message()}
	if s.Headline.Level != note.Blocked {
		c.Status = corev1.ConditionUnknown // it may go on by itself
	}
	rest := s.Wait.Since.Add(StalledAfter).Sub(s.Now)
	switch {
	case old != nil && old.Reason == c.Reason && old.Status == c.Status && s.SameRevision:
		return 0
	case s.Headline.Level != note.Blocked && rest > 0:
		// Nothing is reported that may pass, and nothing taken back that may return: a container that crashes runs in
		// between.
		if s.Headline.Code != "" || old != nil {
			return rest
		}
		return 0
	}
	l.Remove(Stalled)
	if s.Headline.Code != "" {
		l.Set(c, s.Now)
	}
	return 0
}

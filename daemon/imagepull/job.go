package imagepull

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/kruisekit/kruisekit/imagepull"
)

// awayPause is the pause after an attempt that the container runtime did not answer. Such an attempt does not count
// by itself.
const awayPause = 5 * time.Second

// job is a pull with the state that the plan does not need.
type job struct {
	imagepull.Pull

	registry string
	// place among those that wait: the lowest has waited longest.
	place int64
	// running is the attempt under way, or nil.
	running *attempt
	// announced says that the event of the result has been sent.
	announced bool
	// silent is since when the container runtime has not answered; zero where it has.
	silent time.Time
}

// attempt is one call of the runtime, or several with different credentials.
type attempt struct {
	pull      imagepull.Pull
	ifAbsent  bool
	timeout   time.Duration
	registry  string
	namespace string
	cancel    context.CancelFunc
}

// due reports whether the job may be tried now, and when to ask again: zero is when something happens. A deadline that
// has passed ends the job.
func (j *job) due(now time.Time, up bool) (bool, time.Duration) {
	if j.running != nil || j.Ended() {
		return false, 0
	}
	if j.Status.StartTime == nil && up {
		return true, 0
	}
	var turn imagepull.Turn
	if j.Pull, turn = j.Next(now); turn.Do == imagepull.DoTry && !up {
		return false, j.unanswered(now, turn.Timeout)
	}
	// The deadline may pass before the turn of the job comes.
	return turn.Do == imagepull.DoTry, cmp.Or(turn.Wait, turn.Timeout)
}

// unanswered fails an attempt when the container runtime has not answered for the time that an attempt may take, so
// that every pull ends. It returns when to ask again.
func (j *job) unanswered(now time.Time, timeout time.Duration) time.Duration {
	if j.silent.IsZero() {
		j.silent = now
	}
	if rest := timeout - now.Sub(j.silent); rest > 0 {
		return rest
	}
	j.silent = now
	j.fail("the container runtime does not answer", now)
	return timeout
}

// fail counts an attempt that failed.
func (j *job) fail(message string, now time.Time) {
	if j.Pull = j.Fail(message, now); !j.Ended() {
		j.Status.Message = cut(fmt.Sprintf("attempt %d of %d failed: %s", j.Attempts, j.MaxAttempts(), message))
	}
}

// take updates the job with the result of an attempt.
func (j *job) take(o outcome) {
	j.running = nil
	if o.result == resultUnavailable {
		j.NotBefore = o.at.Add(awayPause)
		j.unanswered(o.at, o.attempt.timeout)
		return
	}
	j.silent = time.Time{}
	switch {
	case o.result == resultStopped:
	case o.err == nil:
		j.Pull = j.Succeed(o.imageID, o.at)
	default:
		j.fail(messageOf(o.err), o.at)
	}
}

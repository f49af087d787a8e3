package imagepull

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/kruisekit/kruisekit/imagepull"
)

// awayPause is the delay before the next attempt if the container runtime was unavailable. Such an attempt does not
// count against the backoff limit, see unanswered.
const awayPause = 5 * time.Second

// job is a pull with its state in this process: the place in the queue and the running attempt.
type job struct {
	imagepull.Pull

	registry string
	// place is the position in the queue. The job with the lowest place has waited longest.
	place int64
	// running is the attempt under way, or nil.
	running *attempt
	// announced says that the event of the result has been sent.
	announced bool
	// silent is when the container runtime stopped answering, or when unanswered last counted a failure; zero if the
	// last attempt was answered.
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

// due reports whether an attempt may start now, and after which time to call due again; zero for no timer. up reports
// whether the container runtime is connected. due fails the job if its deadline has passed.
func (j *job) due(now time.Time, up bool) (bool, time.Duration) {
	if j.running != nil || j.Ended() {
		return false, 0
	}
	if j.Status.StartTime == nil && up { // Next would set StartTime, and the deadline must not run in the queue
		return true, 0
	}
	var turn imagepull.Turn
	if j.Pull, turn = j.Next(now); turn.Do == imagepull.DoTry && !up {
		return false, j.unanswered(now, turn.Timeout)
	}
	// A due job may stay in the queue: call due again after the timeout, which is at most the time to the deadline.
	return turn.Do == imagepull.DoTry, cmp.Or(turn.Wait, turn.Timeout)
}

// unanswered records that the container runtime did not answer. Once the runtime has not answered for the timeout of an
// attempt, unanswered counts a failed attempt, so that every pull ends. It returns after which time to call it again.
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
	case o.result == resultStopped: // the process shuts down, and the next one restarts the pull
	case o.err == nil:
		j.Pull = j.Succeed(o.imageID, o.at)
	default:
		j.fail(messageOf(o.err), o.at)
	}
}

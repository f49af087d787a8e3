package imagepull

import (
	"context"
	"fmt"
	"time"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/requeue"
)

const (
	firstPause = time.Second
	longPause  = 30 * time.Second
	// awayText is the failure of pulls that wait for a connection.
	awayText = "the container runtime is not connected"
)

// job is a pull with the state that the plan does not need.
type job struct {
	imagepull.Pull

	registry string
	// place among those that wait: the lowest has waited longest.
	place int64
	// running is the attempt under way, or nil.
	running *attempt
	// failure is what the last attempt said.
	failure string
	// outages are how often the runtime was away, one after the other. Nothing is tried before resume, unless the runtime
	// has come back in another generation.
	outages    int
	resume     time.Time
	generation uint64
	// short says that the last attempt had no room. Nothing is tried before there is room.
	short bool
	// shortTold says that an event has counted it among those that wait for room.
	shortTold bool
	// slow and announced say which events have been sent.
	slow, announced bool
}

// attempt is one call of the runtime, or several with different credentials.
type attempt struct {
	pull       imagepull.Pull
	ifAbsent   bool
	timeout    time.Duration
	generation uint64
	registry   string
	namespace  string
	cancel     context.CancelFunc
}

func (j *job) begun() bool { return j.Status.StartTime != nil }

// underWay says that it has begun, and not ended.
func (j *job) underWay() bool { return j.begun() && !j.Ended() }

// due says whether the job may be tried now, and if not, when to ask again: zero is when something happens. A deadline
// that has passed ends it.
func (j *job) due(now time.Time, link cri.Connection, room imagepull.Headroom) (bool, time.Duration) {
	if j.running != nil || j.Ended() {
		return false, 0
	}
	var after time.Duration
	if j.begun() {
		var turn imagepull.Turn
		j.Pull, turn = j.Next(now)
		if turn.Do != imagepull.DoTry {
			return false, turn.Wait
		}
		after = turn.Timeout // the deadline may come before its turn does
	}
	pause := time.Duration(0)
	if link.Up && link.Generation == j.generation {
		pause = j.resume.Sub(now)
	}
	j.short = j.short && room.Shortage != ""
	if link.Up && !j.short && pause <= 0 {
		return true, after
	}
	switch {
	case !link.Up:
		j.failure = awayText
	case j.short:
		j.failure, pause = room.Shortage, longPause
	}
	var spent time.Duration
	j.Pull, spent = j.Outage(j.failure, now)
	j.tellShort()
	return false, requeue.Sooner(requeue.Sooner(after, pause), spent)
}

// tellShort has the status say that a pull waits for room. The text stays the same, so that waiting costs no writes.
func (j *job) tellShort() {
	if j.short && j.underWay() {
		j.Status.Message = cut(fmt.Sprintf("waiting for attempt %d of %d: %s", j.Attempts+1, j.MaxAttempts(), j.failure))
	}
}

// take is what an attempt's end means for the job.
func (j *job) take(o outcome) {
	j.running = nil
	switch {
	case o.result == resultStopped:
		return
	case o.result == resultUnavailable:
		j.resume = o.at.Add(min(firstPause<<min(j.outages, 10), longPause))
		j.generation = o.attempt.generation
		j.outages++
		j.failure = messageOf(o.err)
		return
	case o.result == resultNoRoom:
		j.short, j.failure = true, messageOf(o.err)
		j.tellShort()
		return
	case o.err == nil:
		j.Pull = j.Succeed(o.imageID, o.at)
	default:
		j.failure = messageOf(o.err)
		j.Pull = j.Fail(j.failure, o.at)
	}
	j.outages, j.resume = 0, time.Time{}
}

// progress is all that is known of a pull under way: the runtime does not say how far it is.
func (j *job) progress(now time.Time) string {
	text := fmt.Sprintf("pulling for %s, attempt %d of %d", j.elapsed(now), j.Attempts+1, j.MaxAttempts())
	if j.running == nil {
		text = fmt.Sprintf("pulling for %s, waiting for attempt %d of %d", j.elapsed(now), j.Attempts+1, j.MaxAttempts())
	}
	if j.failure != "" {
		text += ", before: " + j.failure
	}
	return cut(text)
}

func (j *job) elapsed(now time.Time) time.Duration {
	return now.Sub(j.Status.StartTime.Time).Truncate(time.Second)
}

package workload

import (
	"hash/fnv"
	"maps"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/write"
)

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
	if own, has := r.own[key]; has {
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

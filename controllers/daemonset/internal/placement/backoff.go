package placement

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

const (
	firstBackoff   = time.Second
	longestBackoff = 15 * time.Minute
)

// Backoff remembers, by node, how often the pods of a workload have failed lately. The zero value remembers nothing.
// Nothing but the pauses is lost with it.
type Backoff struct {
	failures map[string]failures
}

// failures of one node.
type failures struct {
	pause time.Duration
	last  time.Time
}

// isRecent reports whether the failures still count.
func (f failures) isRecent(now time.Time) bool { return now.Sub(f.last) <= f.pause+longestBackoff }

// wait is how long a failed pod of a node stays.
func (b Backoff) wait(node string, now time.Time) time.Duration {
	f, known := b.failures[node]
	if !known || !f.isRecent(now) {
		return 0
	}
	return max(f.pause-now.Sub(f.last), 0)
}

// next returns the backoff after some failed pods are deleted. Old failures are forgotten.
func (b Backoff) next(failed []*corev1.Pod, now time.Time) Backoff {
	all := make(map[string]failures, len(failed))
	maps.Copy(all, b.failures)
	maps.DeleteFunc(all, func(_ string, f failures) bool { return !f.isRecent(now) })
	for _, pod := range failed {
		node := eligible.NodeOf(pod)
		f, known := all[node]
		if !known {
			f.pause = firstBackoff / 2
		}
		all[node] = failures{pause: min(2*f.pause, longestBackoff), last: now}
	}
	if len(all) == 0 {
		return Backoff{}
	}
	return Backoff{failures: all}
}

package placement

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

const (
	firstBackoff   = time.Second
	longestBackoff = 15 * time.Minute
)

// Backoff has, by node, how often the pods of a workload have failed lately. Nothing but the pauses is lost with it.
type Backoff map[string]failures

// failures of one node.
type failures struct {
	pause time.Duration
	last  time.Time
}

// wait is how long a failed pod of a node stays.
func (b Backoff) wait(node string, now time.Time) time.Duration {
	return max(b[node].last.Add(b[node].pause).Sub(now), 0)
}

// next returns the backoff after some failed pods are deleted. Old failures are forgotten.
func (b Backoff) next(failed []*corev1.Pod, now time.Time) Backoff {
	all := Backoff{}
	for node, f := range b {
		if now.Sub(f.last) <= f.pause+longestBackoff {
			all[node] = f
		}
	}
	for _, pod := range failed {
		node := eligible.NodeOf(pod)
		all[node] = failures{pause: min(max(2*all[node].pause, firstBackoff), longestBackoff), last: now}
	}
	return all
}

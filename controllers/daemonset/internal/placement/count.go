package placement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

// Counts are the numbers of nodes for a status.
type Counts struct {
	// Desired nodes are eligible. Of these, Current have a pod, and Ready, Available and Updated are the nodes whose pod
	// is.
	Desired, Current, Ready, Available, Updated int32
	// Misscheduled nodes are not eligible and have a pod.
	Misscheduled int32
}

// Count counts the nodes. Of the pods of the input, those that after maps to nil count as deleted; others are as after
// has them. Pods that after alone has, with a UID that the input lacks, were created.
//
// A pod that terminates makes its node current. Ready and available is a node with any such pod; updated is one without
// an old pod.
func Count(in Input, after map[types.UID]*corev1.Pod) Counts {
	in.Pods = merge(in.Pods, after)
	p := &planner{in: &in}
	p.group()
	c := Counts{Desired: p.result.Desired}
	for _, at := range p.places {
		pods := len(at.active) + len(at.leaving) + len(at.failed)
		switch {
		case at.node == nil || pods == 0:
			continue
		case !at.verdict.Run:
			c.Misscheduled++
			continue
		}
		c.Current++
		ready, available, old := false, false, 0
		for _, pod := range at.active {
			ready = ready || isReady(pod)
			available = available || p.isAvailable(pod)
			if !in.IsUpdated(pod) {
				old++
			}
		}
		c.Ready += int32(boolean(ready))
		c.Available += int32(boolean(available))
		c.Updated += int32(boolean(old == 0 && len(at.active) > 0))
	}
	return c
}

func merge(pods []*corev1.Pod, after map[types.UID]*corev1.Pod) []*corev1.Pod {
	known, all := make(map[types.UID]bool, len(pods)), make([]*corev1.Pod, 0, len(pods)+len(after))
	for _, pod := range pods {
		known[pod.UID] = true
		now, changed := after[pod.UID]
		switch {
		case changed && now != nil:
			pod = now
		case changed && pod.DeletionTimestamp == nil:
			gone := *pod // it terminates
			gone.DeletionTimestamp = &gone.CreationTimestamp
			pod = &gone
		}
		all = append(all, pod)
	}
	for uid, pod := range after {
		if pod != nil && !known[uid] {
			all = append(all, pod)
		}
	}
	return all
}

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

package workloads

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/note"
)

const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// noteRejected is the code of a note about pods that are not created yet because a kubelet rejected the pods before
// them.
const noteRejected = "PodRejected"

// rejections remembers that kubelets rejected pods of a workload lately. As many new pods as were rejected wait for a
// pause, which doubles while the new pods are rejected, too; without it, a workload and a kubelet would create and
// reject pods without end. Pods that nodes take do not wait for those that nodes reject. The zero value remembers none.
type rejections struct {
	generation int64
	// since is when the pause began, and count how many pods were rejected since then.
	since time.Time
	pause time.Duration
	count int
	// seen are the rejected pods that exist, last the one that was seen last.
	seen map[types.UID]bool
	last note.Note
}

// next returns what is to be remembered after a look at the pods that have finished.
func (r rejections) next(generation int64, pods []*corev1.Pod, now time.Time) rejections {
	next := rejections{generation: generation}
	if r.generation == generation && now.Sub(r.since) <= r.pause+longestPause {
		next.since, next.pause, next.count, next.last = r.since, r.pause, r.count, r.last
	}
	fresh := 0
	for _, pod := range pods {
		if !isRejected(pod) {
			continue
		}
		if next.seen == nil {
			next.seen = map[types.UID]bool{}
		}
		next.seen[pod.UID] = true
		if !r.seen[pod.UID] {
			fresh++
			next.last = note.Note{
				Level:  note.Waiting,
				Code:   noteRejected,
				Object: pod.Name,
				Text:   fmt.Sprintf("a kubelet rejected it: %.100s", pod.Status.Reason),
			}
		}
	}
	switch {
	case fresh == 0:
	case next.since.IsZero(): // one rejection is no sequence: the replacement does not wait
		next.since = now
	case now.Sub(next.since) < next.pause: // of the same pods
		next.count += fresh
	default:
		next.since, next.pause, next.count = now, min(max(2*next.pause, firstPause), longestPause), fresh
	}
	return next
}

// wait returns how many new pods wait, and how long.
func (r rejections) wait(now time.Time) (pods int, d time.Duration) {
	if d = r.since.Add(r.pause).Sub(now); d <= 0 {
		return 0, 0
	}
	return r.count, d
}

// isRejected reports whether a pod has failed before any of its containers ran: its kubelet rejected it.
func isRejected(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed {
		return false
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].ContainerID != "" {
				return false
			}
		}
	}
	return true
}

// MaxCreations returns how many pods one pass builds: no more than the package function, and as many fewer as wait
// because kubelets rejected others.
func (p *Plan) MaxCreations(o *Observation, creations int, spec any) int {
	most := MaxCreations(creations, spec)
	if waiting, d := o.rejected.wait(o.Now); waiting > 0 && creations > 0 {
		p.After.In(d)
		p.Waits = append(p.Waits, o.rejected.last)
		most = min(most, max(creations-waiting, 0))
	}
	return most
}

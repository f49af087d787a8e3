package containermeta

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what is remembered of a pod from one pass to the next. Passes of one pod come one after the other.
type memory struct {
	uid types.UID
	// environments are those that were read, by container ID: of each what comes from the pod.
	environments map[string]map[string]string
	// fed is what feeds environments in the pod, and since when it is that.
	fed   string
	since time.Time
	// unread and unstopped are containers with which something failed, by ID.
	unread, unstopped map[string]trial
}

// trial is something that failed some times in a row, and is tried again at some time.
type trial struct {
	failed int
	next   time.Time
}

// fail is the trial after one more failure: each pause is twice the last, up to most.
func (t trial) fail(now time.Time, most time.Duration) trial {
	pause := leastTrial
	for range t.failed {
		pause = min(2*pause, most)
	}
	return trial{failed: t.failed + 1, next: now.Add(pause)}
}

// remember is what is remembered of a pod; nothing at first.
func (r *Reconciler) remember(name types.NamespacedName, uid types.UID) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memory[name]
	if m == nil || m.uid != uid {
		m = &memory{
			uid: uid, environments: map[string]map[string]string{}, unread: map[string]trial{}, unstopped: map[string]trial{},
		}
		r.memory[name] = m
	}
	return m
}

// forget drops what is known of a pod that is gone, and gives up what is done to it.
func (r *Reconciler) forget(name types.NamespacedName) {
	for k := range r.workers.Known() {
		if k.pod == name {
			r.workers.Forget(k)
		}
	}
	r.writes.Forget(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory, name)
}

// calm says when what feeds environments in a pod has been the same for so long that its kubelet has seen it. It sees a
// pod's changes for itself, and may be behind: a container that it starts before has the values of before.
func (m *memory) calm(pod *corev1.Pod, now time.Time) time.Time {
	if fed := feeds(pod); fed != m.fed || m.since.IsZero() {
		m.fed, m.since = fed, now
	}
	return m.since.Add(catchUp)
}

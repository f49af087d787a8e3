package launchpriority

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory has the barriers of the pods that wait, as the API server gave them. The zero value is empty.
type memory struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]remembered
}

// remembered is what is known of one pod. It is not changed.
type remembered struct {
	pod     types.UID
	barrier *corev1.ConfigMap
	// at is when the API server answered.
	at time.Time
	// marked says that the pod was marked complete, whatever the cache says.
	marked bool
}

// keep remembers the barrier of a pod. One that is being deleted is not worth it.
func (m *memory) keep(name types.NamespacedName, pod types.UID, barrier *corev1.ConfigMap, now time.Time) {
	if barrier.DeletionTimestamp != nil {
		m.forget(name)
		return
	}
	lean := barrier.DeepCopy()
	lean.ManagedFields = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods == nil {
		m.pods = map[types.NamespacedName]remembered{}
	}
	marked := m.pods[name].pod == pod && m.pods[name].marked
	m.pods[name] = remembered{pod, lean, now, marked}
}

// mark remembers that a pod was marked.
func (m *memory) mark(name types.NamespacedName, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, is := m.pods[name]; is && known.pod == pod {
		known.marked = true
		m.pods[name] = known
	}
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, name)
}

// of is what is known of a pod; false for nothing.
func (m *memory) of(name types.NamespacedName, pod types.UID) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, is := m.pods[name]
	return known, is && known.pod == pod
}

// has says whether anything is remembered under a name.
func (m *memory) has(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, is := m.pods[name]
	return is
}

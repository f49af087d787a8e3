package launchpriority

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
)

// snapshot is what one pass looks at. Objects in it are only read.
type snapshot struct {
	pod     *corev1.Pod
	barrier *corev1.ConfigMap
	policy  launch.Policy
	// marked means that the pod was marked complete, whatever the cache shows.
	marked bool
	// fresh is what is left of the time that a kubelet has to find what was written; zero for nothing.
	fresh time.Duration
}

// observe returns the snapshot; nil where there is nothing to do for a pod.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil {
		return nil, err
	}
	if pod == nil || !launch.Concerns(pod, r.options.Policy) && !launch.Incomplete(pod, r.options.Policy) {
		r.memory.forget(name)
		return nil, nil
	}
	s := &snapshot{pod: pod, policy: r.options.Policy}
	if s.barrier, s.fresh, err = r.barrier(ctx, pod); err != nil {
		return nil, err
	}
	known, is := r.memory.of(name, pod.UID)
	s.marked = is && known.marked
	return s, nil
}

// barrier is the ConfigMap that a pod waits for; nil where there is none. It is read when it is not remembered, or when
// the kubelet misses what should be in it. After a write the kubelet is given some time to find it: fresh is what is
// left of that.
func (r *Reconciler) barrier(
	ctx context.Context, pod *corev1.Pod,
) (barrier *corev1.ConfigMap, fresh time.Duration, err error) {
	name := client.ObjectKeyFromObject(pod)
	if known, is := r.memory.of(name, pod.UID); is {
		if !launch.MayBeStale(launch.Input{Pod: pod, Barrier: known.barrier, Policy: r.options.Policy}) {
			return known.barrier, 0, nil
		}
		if left := trust - r.api.Now().Sub(known.at); left > 0 {
			return known.barrier, left, nil
		}
	}
	barrierName := types.NamespacedName{Namespace: pod.Namespace, Name: launch.BarrierName(pod.Name)}
	barrier, err = stored.Find[corev1.ConfigMap](ctx, r.api.Live, barrierName)
	if err != nil {
		return nil, 0, err
	}
	if barrier == nil {
		r.memory.forget(name)
		return nil, 0, nil
	}
	r.memory.keep(name, pod.UID, barrier, r.api.Now())
	return barrier, 0, nil
}

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

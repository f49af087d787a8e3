package podreadiness

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snapshot is a pod without the condition.
type snapshot struct {
	pod *corev1.Pod
	now time.Time
	// left is how long the cache may still take to show the condition that was set; zero and less for none.
	left time.Duration
}

// observe returns the snapshot; nil for a pod that does not wait for the condition.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	s := &snapshot{pod: &corev1.Pod{}, now: r.api.Now()}
	if err := r.api.Client.Get(ctx, name, s.pod); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	if !waits(s.pod) { // as one that is not there does not
		r.set.forget(name)
		return nil, nil
	}
	s.left = patience - s.now.Sub(r.set.when(name, s.pod.UID))
	return s, nil
}

// conditions has the pods whose condition was set, until the cache shows it. The zero value is empty.
type conditions struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]condition
}

type condition struct {
	pod types.UID
	at  time.Time
}

func (s *conditions) note(name types.NamespacedName, pod types.UID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods == nil {
		s.pods = map[types.NamespacedName]condition{}
	}
	s.pods[name] = condition{pod, now}
}

func (s *conditions) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, name)
}

func (s *conditions) has(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.pods[name]
	return is
}

// when the condition of a pod was set; long ago for never.
func (s *conditions) when(name types.NamespacedName, pod types.UID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.pods[name]; w.pod == pod {
		return w.at
	}
	return time.Time{}
}

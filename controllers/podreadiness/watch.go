package podreadiness

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// events are those of pods that wait, and those by which the cache shows what was said.
func (r *Reconciler) events() predicate.Predicate {
	relevant := func(o client.Object) bool {
		pod, is := o.(*corev1.Pod)
		return is && (waits(pod) || r.said.has(client.ObjectKeyFromObject(pod)))
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return relevant(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return relevant(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return r.said.has(client.ObjectKeyFromObject(e.Object)) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// said has the pods whose condition was set, until the cache shows it. The zero value is empty.
type said struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]word
}

type word struct {
	pod types.UID
	at  time.Time
}

func (s *said) note(name types.NamespacedName, pod types.UID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods == nil {
		s.pods = map[types.NamespacedName]word{}
	}
	s.pods[name] = word{pod, now}
}

func (s *said) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, name)
}

func (s *said) has(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.pods[name]
	return is
}

// when the condition of a pod was set; long ago for never.
func (s *said) when(name types.NamespacedName, pod types.UID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.pods[name]; w.pod == pod {
		return w.at
	}
	return time.Time{}
}

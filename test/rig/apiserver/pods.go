package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChangePods is one step of a component that writes pods, in the order of their names. The function returns the pod to
// store, which may be the same, or nil where the node of a deleted pod has ended it. The function neither calls the
// server nor changes the pod that it is called with.
func (s *Server) ChangePods(change func(*corev1.Pod) *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.each("Pod") {
		pod, is := object.(*corev1.Pod)
		if !is {
			continue
		}
		k, _, _ := s.keyOf(pod, client.ObjectKeyFromObject(pod))
		switch after := change(pod); {
		case after == nil && len(pod.Finalizers) == 0:
			s.next()
			s.remove(k)
		case after != nil && after != pod:
			s.replace(k, pod, after)
		}
	}
}

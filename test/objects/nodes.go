package objects

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/eligible"
	"github.com/kruisekit/kruisekit/test/standin"
)

// RunPods is one step of the scheduler and of the nodes: each pod is bound, or its containers run or end.
func (s *Server) RunPods(kubelet *standin.Kubelet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.each("Pod") {
		pod, is := object.(*corev1.Pod)
		if !is {
			continue
		}
		k, _, _ := s.keyOf(pod, client.ObjectKeyFromObject(pod))
		after := pod.DeepCopy()
		switch {
		case pod.DeletionTimestamp != nil:
			if len(pod.Finalizers) == 0 {
				s.next()
				delete(s.stored, k)
			}
			continue
		case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded: // it never runs again
			continue
		case pod.Spec.NodeName == "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
			continue
		case pod.Spec.NodeName == "":
			pinned := eligible.NodeOf(pod)
			if pinned != "" && !s.hasNode(pinned) {
				continue
			}
			after.Spec.NodeName = cmp.Or(pinned, kubelet.Node)
		default:
			kubelet.Run(after)
		}
		s.replace(k, pod, after)
	}
}

// hasNode reports whether a node exists. The lock is held.
func (s *Server) hasNode(name string) bool {
	for _, node := range s.each("Node") {
		if node.GetName() == name {
			return true
		}
	}
	return false
}

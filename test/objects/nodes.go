package objects

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/standin"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// RunPods is one step of the scheduler and of the nodes: each pod is bound, or its containers run or end.
func (s *Server) RunPods(kubelet *standin.Kubelet) {
	s.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		after := pod.DeepCopy()
		switch {
		case pod.DeletionTimestamp != nil:
			return nil
		case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded: // it never runs again
		case pod.Spec.NodeName == "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		case pod.Spec.NodeName == "":
			if pinned := eligible.NodeOf(pod); pinned == "" || s.hasNode(pinned) {
				after.Spec.NodeName = cmp.Or(pinned, kubelet.Node)
			}
		default:
			kubelet.Run(after)
		}
		return after
	})
}

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

// hasNode reports whether a node exists. The lock is held.
func (s *Server) hasNode(name string) bool {
	for _, node := range s.each("Node") {
		if node.GetName() == name {
			return true
		}
	}
	return false
}

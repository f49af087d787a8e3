package workloadspread

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Others reports whether another WorkloadSpread has a pod: the annotation of the pod names one that exists, whose
// filter selects the pod, and whose target may control the pod.
func (x *Index) Others(ws *subset.Spread, pod *corev1.Pod) bool {
	m, _ := subset.MatchOf(pod)
	other, _ := x.Find(types.NamespacedName{Namespace: pod.Namespace, Name: m.Name})
	if other.spread == nil || m.Name == ws.Name || other.target.Name == "" || !subset.Admits(other.spread, pod.Labels) {
		return false
	}
	own, _ := subset.TargetOf(ws)
	return other.target == own || other.target.Kind != own.Kind || other.target.Group != own.Group
}

package pub

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Chain is the controller of a pod, the controller of that, and so on. The versions of the workloads do not matter.
type Chain []Target

// Matches reports whether the budget guards a pod: its target is in the chain of controllers, or its selector selects
// the pod.
func (b Budget) Matches(pod *corev1.Pod, chain Chain) bool {
	if b.Target == nil {
		return b.Selects(pod.Labels)
	}
	return slices.Contains(chain, *b.Target)
}

// Match returns the budget that guards a pod; nil where none does. Budgets are those of the namespace of the pod. Of
// several, the first by name does whose target is a controller of the pod, else the first by name that selects the pod.
//
// The stamp of a pod counts only where no budget matches and the stamp names a budget with a target: a controller may
// have found the pod by the selector of the target.
func Match(pod *corev1.Pod, chain Chain, budgets []Budget) *Budget {
	var best, stamped *Budget
	for i := range budgets {
		b := &budgets[i]
		if b.Target != nil && b.Name == Stamp(pod) {
			stamped = b
		}
		if b.Matches(pod, chain) && (best == nil || b.Precedes(*best)) {
			best = b
		}
	}
	if best == nil {
		return stamped
	}
	return best
}

// Precedes reports whether a budget comes before another one that guards the same pod.
func (b Budget) Precedes(other Budget) bool {
	if targeted := b.Target != nil; targeted != (other.Target != nil) {
		return targeted
	}
	return cmp.Less(b.Name, other.Name)
}

// Stamp returns the name of the budget that is recorded on a pod; empty where there is none.
func Stamp(pod *corev1.Pod) string {
	if name := pod.Annotations[kruise.PodRelatedPubKey]; name != "" {
		return name
	}
	return pod.Annotations[kruise.PodRelatedPubKeyOld]
}

func groupOf(apiVersion string) (string, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return gv.Group, err
}

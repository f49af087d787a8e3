package pod

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/pub"
)

// Budgets finds the PodUnavailableBudget of a pod. A Guard of webhooks/disruption does.
type Budgets interface {
	// Ready waits until all budgets can be read. It returns at once if they can, also with a context that has ended.
	Ready(ctx context.Context) error
	// Budget returns the budget that guards a pod; nil where none does.
	Budget(ctx context.Context, pod *corev1.Pod) (*pub.Budget, error)
}

// Budget returns the step that stamps a pod with its PodUnavailableBudget. A lookup that fails leaves the pod without
// the stamp, which the reconciler of budgets adds later.
func Budget(b Budgets) Step {
	s := Step{Name: scope.Budgets().Step, Apply: func(ctx context.Context, r Request) (Result, error) {
		if b == nil {
			return Result{}, nil
		}
		pod := *r.Pod
		pod.Namespace = r.Namespace
		budget, err := b.Budget(ctx, &pod)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to look up the budget of a new pod, which gets no stamp",
				"namespace", r.Namespace)
			return Result{Lacking: 1}, nil
		}
		return Result{Pod: stamped(r.Pod, budget)}, nil
	}}
	if b != nil {
		s.Ready = b.Ready
	}
	return s
}

// stamped returns the pod with the name of its budget; nil where the pod has the name, or needs none.
func stamped(pod *corev1.Pod, b *pub.Budget) *corev1.Pod {
	if b == nil ||
		pod.Annotations[kruise.PodRelatedPubKey] == b.Name && pod.Annotations[kruise.PodRelatedPubKeyOld] == b.Name {
		return nil
	}
	next := *pod
	next.Annotations = maps.Clone(pod.Annotations)
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[kruise.PodRelatedPubKey], next.Annotations[kruise.PodRelatedPubKeyOld] = b.Name, b.Name
	return &next
}

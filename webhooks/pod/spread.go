package pod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
)

// Spreads gives new pods the subsets of their WorkloadSpreads. An Allocator of webhooks/workloadspread does.
type Spreads interface {
	// Ready waits until all WorkloadSpreads can be read. It returns at once if they can, also with a context that has
	// ended.
	Ready(ctx context.Context) error
	// Admit records the pod, and returns it with what its subset adds; nil where the pod stays as it is. The request is
	// the namespace of the admission request, and as its name the UID, which identifies a pod without a name.
	Admit(ctx context.Context, request types.NamespacedName, pod *corev1.Pod) (*corev1.Pod, error)
}

// Spread returns the step that gives a pod its subset, once all WorkloadSpreads can be read. A lookup that fails leaves
// the pod without one, with a warning: the controller counts the pod where it runs. A patch of a subset that cannot be
// applied rejects the pod, which would run without what the patch changes.
func Spread(s Spreads) Step {
	step := Step{Name: scope.Spreads().Step, Apply: func(ctx context.Context, r Request) (Result, error) {
		if s == nil || r.DryRun {
			return Result{}, nil
		}
		request := types.NamespacedName{Namespace: r.Namespace, Name: string(r.UID)}
		var next *corev1.Pod
		err := s.Ready(ctx)
		if err == nil {
			next, err = s.Admit(ctx, request, r.Pod)
		}
		var patch *workloadspread.PatchError
		switch {
		case errors.As(err, &patch):
			return Result{}, &InvalidError{Err: err}
		case err != nil:
			log.FromContext(ctx).Error(err, "Failed to find the subset of a new pod, which gets none", "namespace", r.Namespace)
			return Result{
				Lacking: 1, Warnings: []string{fmt.Sprintf("created without the subset of its WorkloadSpread: %v", err)},
			}, nil
		}
		return Result{Pod: next}, nil
	}}
	if s != nil {
		step.Ready = s.Ready
	}
	return step
}

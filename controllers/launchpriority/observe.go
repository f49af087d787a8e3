package launchpriority

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
)

// snapshot is what one pass looks at. Objects in it are only read.
type snapshot struct {
	pod *corev1.Pod
	// barrier is the ConfigMap that the pod waits for, read live; nil where there is none.
	barrier *corev1.ConfigMap
	policy  launch.Policy
}

// observe returns the snapshot; nil where there is nothing to do for a pod.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil {
		return nil, err
	}
	if pod == nil || !launch.Concerns(pod, r.options.Policy) && !launch.Incomplete(pod, r.options.Policy) {
		return nil, nil
	}
	barrier, err := stored.Find[corev1.ConfigMap](ctx, r.api.Live,
		types.NamespacedName{Namespace: pod.Namespace, Name: launch.BarrierName(pod.Name)})
	return &snapshot{pod: pod, barrier: barrier, policy: r.options.Policy}, err
}

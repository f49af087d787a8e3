package podreadiness

import (
	"context"
	"fmt"
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
		r.set.Forget(name)
		return nil, nil
	}
	if set := r.set.Recall(name); set.pod == s.pod.UID {
		s.left = patience - s.now.Sub(set.at)
	}
	return s, nil
}

// condition is a condition that was set.
type condition struct {
	pod types.UID
	at  time.Time
}

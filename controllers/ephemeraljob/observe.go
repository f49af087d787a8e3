package ephemeraljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is what one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	job *ephemeralJob
	// fault is why the spec cannot be decoded; nil where it was.
	fault error
	// pods are those that the selector selects. Others are ignored.
	pods []*corev1.Pod
	// refused are the pods that refused the containers. A process that has just started knows none.
	refused map[types.UID]refusal
	now     time.Time
	// recheckAfter is when to look again where the cache lacks what was written.
	recheckAfter time.Duration
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.job) }

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.jobs.Latest(ctx, r.api.Cached, name)
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached:
		r.forget(name)
		return nil, nil
	case latest.Object == nil:
		return nil, nil
	}
	job, malformed, err := stored.Decode[ephemeralJob](latest.Object)
	if err != nil {
		return nil, err
	}
	s := &snapshot{
		job: job, fault: malformed, refused: r.refused.Recall(name), now: r.api.Now(),
		recheckAfter: latest.RecheckAfter,
	}
	return s, r.observePods(ctx, s)
}

// observePods reads the pods that the selector selects, as the own writes left them. A job that has ended looks at
// none.
func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	selector, err := selectorOf(s.job.Spec.Selector)
	if err != nil || s.job.DeletionTimestamp != nil || over(s.job) {
		return nil //nolint:nilerr // the pass reports what is wrong with the selector
	}
	var list corev1.PodList
	matching := client.MatchingLabelsSelector{Selector: selector}
	err = r.api.Client.List(ctx, &list, client.InNamespace(s.job.Namespace), matching, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	pods, recheckAfter, err := r.pods.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err != nil {
		return fmt.Errorf("read pods: %w", err)
	}
	if recheckAfter > 0 {
		s.recheckAfter = recheckAfter
	}
	s.pods = pods
	return nil
}

// forget drops what is known of a job that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.jobs.Writes.Forget(name)
	r.pods.Forget(name)
	r.refused.Forget(name)
	r.emitted.Forget(name)
	r.rules.Forget(name)
}

package broadcastjob

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// snapshot is what one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	// job with its defaults.
	job *broadcastJob
	// pods are those that the job controls, and nodes all of the cluster.
	pods  []*corev1.Pod
	nodes []*corev1.Node
	now   time.Time
	// bind writes the node into the spec of new pods, past the scheduler.
	bind bool
	// invalid is why nothing can be done with the spec.
	invalid error
	// wait is what the job waited for at the end of the last pass.
	wait workloads.Wait
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
	job, malformed, err := stored.Decode[broadcastJob](latest.Object)
	if err != nil || job.DeletionTimestamp != nil {
		return nil, err
	}
	s := &snapshot{
		job: job, invalid: malformed, now: r.api.Now(), bind: r.options.Bind,
		recheckAfter: latest.RecheckAfter, wait: r.waits.Recall(name),
	}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass rejects the job
	}
	job.Default()
	if over(job) {
		return s, r.observePods(ctx, s)
	}
	if s.invalid = invalid(job); s.invalid != nil {
		return s, nil //nolint:nilerr // as above
	}
	var nodes corev1.NodeList
	if err := r.api.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	s.nodes = stored.Pointers(nodes.Items)
	return s, r.observePods(ctx, s)
}

// observePods reads the pods of a job, as the own writes left them. Those that were deleted may still terminate.
func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	of := append(owned.In(s.job.Namespace, s.job.UID), client.UnsafeDisableDeepCopy)
	if err := r.api.Client.List(ctx, &list, of...); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	pods, recheckAfter, err := r.pods.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err != nil {
		return fmt.Errorf("read pods: %w", err)
	}
	s.recheckAfter = cmp.Or(recheckAfter, s.recheckAfter)
	going, recheckAfter := r.pods.Deleting(s.key())
	s.recheckAfter = passes.Sooner(s.recheckAfter, recheckAfter)
	for _, pod := range going {
		terminating := *pod
		terminating.DeletionTimestamp = cmp.Or(pod.DeletionTimestamp, &metav1.Time{Time: s.now})
		pods = append(pods, &terminating)
	}
	s.pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !owned.Controls(s.job, pod) })
	return nil
}

// forget drops what is known of a job that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.jobs.Writes.Forget(name)
	r.confirmed.Forget(name)
	r.pods.Forget(name)
	r.waits.Forget(name)
	r.emitted.Forget(name)
}

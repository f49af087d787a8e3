package broadcastjob

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// snapshot is what one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	// job with its defaults.
	job   *broadcastJob
	input broadcast.Input
	// invalid is why nothing can be done with the spec.
	invalid error
	// recheckAfter is when to look again where the cache lacks what was written.
	recheckAfter time.Duration
}

// knowledge is what is known of a job beside what the API server stores. It may be lost at any time.
type knowledge struct {
	// deleted are the pods whose deletion was answered, until the cache shows that.
	deleted map[types.UID]bool
	// wait is what the job waited for at the end of the last pass.
	wait conditions.Wait
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
	s := &snapshot{job: job, invalid: malformed, recheckAfter: latest.RecheckAfter}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass rejects the job
	}
	job.Default()
	s.input = broadcast.Input{Job: job, Now: r.api.Now(), Bind: r.options.Bind}
	if broadcast.Over(job) {
		return s, r.observePods(ctx, s)
	}
	if s.invalid = invalid(job); s.invalid != nil {
		return s, nil //nolint:nilerr // as above
	}
	var nodes corev1.NodeList
	if err := r.api.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	s.input.Nodes = stored.Pointers(nodes.Items)
	return s, r.observePods(ctx, s)
}

// invalid returns the first fault for which the webhook rejects a job, and for which pods cannot be created as the user wants.
func invalid(job *broadcastJob) error {
	for _, fault := range validation.BroadcastJob(job) {
		long := fault.Field == "metadata.name" && strings.Contains(fault.Detail, "no more than")
		if long || fault.Field == "spec.parallelism" || fault.Field == "spec.template.spec.restartPolicy" {
			return fault
		}
	}
	return nil
}

// observePods reads the pods of a job, as the own writes left them.
func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list, append(owned.In(s.job.Namespace, s.job.UID), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	pods, recheckAfter, err := r.pods.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err != nil {
		return fmt.Errorf("read pods: %w", err)
	}
	if recheckAfter > 0 {
		s.recheckAfter = recheckAfter
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !owned.Controls(s.job, pod) })
	s.input.Pods = r.withDeletions(s, pods)
	return nil
}

// withDeletions marks the pods whose deletion the cache does not show yet.
func (r *Reconciler) withDeletions(s *snapshot, pods []*corev1.Pod) []*corev1.Pod {
	deleted := r.memory.Recall(s.key()).deleted
	if len(deleted) == 0 {
		return pods
	}
	lagging := map[types.UID]bool{}
	for i, pod := range pods {
		if deleted[pod.UID] && pod.DeletionTimestamp == nil {
			pods[i] = pod.DeepCopy()
			pods[i].DeletionTimestamp = &metav1.Time{Time: s.input.Now}
			lagging[pod.UID] = true
		}
	}
	r.memory.Note(s.key(), func(k *knowledge) { k.deleted = lagging })
	return pods
}

// noteDeleted keeps the deletions of a pass.
func (r *Reconciler) noteDeleted(s *snapshot, deleted []broadcast.Deletion) {
	r.memory.Note(s.key(), func(k *knowledge) {
		all := maps.Clone(k.deleted)
		if all == nil {
			all = map[types.UID]bool{}
		}
		for _, d := range deleted {
			all[d.Pod.UID] = true
		}
		k.deleted = all
	})
}

// forget drops what is known of a job that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.jobs.Writes.Forget(name)
	r.pods.Forget(name)
	r.memory.Forget(name)
	r.emitted.Forget(name)
	r.unfinished.Forget(name)
}

package imagepulljob

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/pullsecrets"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

type queue = watches.Queue

const (
	// jobField is the name of the index of jobs by their interests.
	jobField = "kruisekit.dev/pulls"
	// nodeField is the name of the index of pods by their node.
	nodeField = "kruisekit.dev/node"
)

// keysOf are the interests of a job.
func (r *Reconciler) keysOf(o client.Object) []string {
	if job := stored.Whole[pullJob](o); job != nil {
		return imagepull.Interests(job, r.options.SecretNamespace)
	}
	return nil
}

func nodeOf(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// under are the jobs with an interest. They may be the cache's and are only read.
func (r *Reconciler) under(ctx context.Context, interest string) ([]*unstructured.Unstructured, error) {
	return stored.List(ctx, r.api.Cached, gvk(), client.MatchingFields{jobField: interest})
}

// withoutProgress leaves out what a pass writes into the status of its job.
func withoutProgress() predicate.Predicate {
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		return lost(before, after, "startTime") || lost(before, after, "completionTime")
	})
}

// lost reports whether a field of the status was removed. A user may remove such a field to run the job again.
func lost(before, after *unstructured.Unstructured, field string) bool {
	_, was, _ := stored.Value[string](before, "status", field)
	_, is, _ := stored.Value[string](after, "status", field)
	return was && !is
}

// watcher finds the jobs that an event is about, and wakes them.
type watcher struct {
	*Reconciler
	queue queue
}

// wake wakes the jobs with an interest.
func (w watcher) wake(ctx context.Context, interest string) {
	w.wakeWhere(ctx, interest, func(types.UID) bool { return true })
}

// wakeWhere wakes the jobs with an interest that have one of some UIDs.
func (w watcher) wakeWhere(ctx context.Context, interest string, has func(types.UID) bool) {
	jobs, err := w.under(ctx, interest)
	watches.Log(ctx, err, "Jobs of an event not found")
	for _, job := range jobs {
		if has(job.GetUID()) {
			w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
}

// wakeAffected wakes the jobs with an interest whose rule an event affects.
func (w watcher) wakeAffected(ctx context.Context, interest string, affects func(*imagepull.Rule) bool) {
	jobs, err := w.under(ctx, interest)
	if err != nil {
		watches.Log(ctx, err, "Jobs of an event not found")
		return
	}
	for _, request := range w.rules.Affected(interest, jobs, affects) {
		w.queue.Add(request)
	}
}

// nodeEvents: a NodeImage that comes or goes is for those who select it, and what changes in it for those who asked for
// it. When the process starts, all jobs are looked at anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				watcher{r, q}.node(ctx, e.Object)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.nodeImages.Writes.Forget(types.NamespacedName{Name: e.Object.GetName()})
			r.decoded.Forget(types.NamespacedName{Name: e.Object.GetName()})
			watcher{r, q}.node(ctx, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			w := watcher{r, q}
			before, after := r.decoded.Decode(e.ObjectOld), r.decoded.Decode(e.ObjectNew)
			if before == nil || after == nil {
				// Those whose NodeImage could not be decoded, and now can be, or the other way round.
				if before != nil || after != nil {
					w.node(ctx, e.ObjectNew)
				}
				return
			}
			if !maps.Equal(before.Labels, after.Labels) {
				w.wakeAffected(ctx, imagepull.InLabels, func(rule *imagepull.Rule) bool {
					return rule.Matches(before.Labels) != rule.Matches(after.Labels)
				})
			}
			for ref, owners := range imagepull.Changed(before, after) {
				w.wakeWhere(ctx, imagepull.InImage(ref), func(uid types.UID) bool { return owners[uid] })
			}
		},
	}
}

// node wakes all who select a node.
func (w watcher) node(ctx context.Context, node client.Object) {
	w.wake(ctx, imagepull.InAllNodes)
	w.wake(ctx, imagepull.InNode(node.GetName()))
	w.wakeAffected(ctx, imagepull.InLabels, func(rule *imagepull.Rule) bool { return rule.Matches(node.GetLabels()) })
	var pods corev1.PodList
	err := w.api.Client.List(ctx, &pods, client.MatchingFields{nodeField: node.GetName()}, client.UnsafeDisableDeepCopy)
	watches.Log(ctx, err, "Pods of a node not found")
	for i := range pods.Items {
		w.pod(ctx, nil, &pods.Items[i])
	}
}

// podEvents: a pod is for the jobs of its namespace that count it, or no longer do.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q queue, before, after *corev1.Pod) {
		watcher{r, q}.pod(ctx, before, after)
	})
}

// pod wakes the jobs that a change of a pod is about. One of both is nil where there was none, or is none.
func (w watcher) pod(ctx context.Context, before, after *corev1.Pod) {
	some := after
	if some == nil {
		some = before
	}
	if imagepull.PodMatters(before, after) {
		w.wakeAffected(ctx, imagepull.InPods(some.Namespace), func(rule *imagepull.Rule) bool {
			return rule.SelectsAnother(before, after)
		})
	}
}

// copyEvents requeues the jobs that use a copy when another client changes or deletes the copy.
func copyEvents() handler.TypedEventHandler[*corev1.Secret, reconcile.Request] {
	wake := func(s *corev1.Secret, q queue) {
		for _, user := range pullsecrets.Users(s) {
			q.Add(reconcile.Request{NamespacedName: pullsecrets.Name(user)})
		}
	}
	return handler.TypedFuncs[*corev1.Secret, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Secret], q queue) {
			if !pullsecrets.Same(e.ObjectOld, e.ObjectNew) {
				wake(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Secret], q queue) { wake(e.Object, q) },
	}
}

// decode decodes jobs, but for those that cannot be decoded.
func decode(raws []*unstructured.Unstructured) []*pullJob {
	jobs := make([]*pullJob, 0, len(raws))
	for _, raw := range raws {
		if job := stored.Whole[pullJob](raw); job != nil {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// poll reads the pull secrets of jobs under way again and again, and wakes the jobs when one has changed.
func (r *Reconciler) poll(ctx context.Context, q queue) error {
	once := func(ctx context.Context) {
		raws, err := r.under(ctx, imagepull.InSecrets)
		if err == nil {
			err = r.secrets.Changed(ctx, decode(raws), func(job *pullJob) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			})
		}
		watches.Log(ctx, err, "Pull secrets not read")
	}
	go wait.UntilWithContext(ctx, once, r.options.SecretPeriod)
	return nil
}

// secretEvents wakes the jobs that name a secret which has changed.
func (r *Reconciler) secretEvents() handler.EventHandler {
	touched := func(ctx context.Context, o client.Object, q queue) {
		r.secrets.Touched(client.ObjectKeyFromObject(o))
		watcher{r, q}.wake(ctx, imagepull.InSecret(o.GetNamespace(), o.GetName()))
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { touched(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { touched(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { touched(ctx, e.Object, q) },
	}
}

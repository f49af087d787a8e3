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

// withoutProgress leaves out what a reconcile writes into the status of its job, but for the end. A user may remove a
// time to run the job again.
func withoutProgress() predicate.Predicate {
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		_, was, _ := stored.Value[string](before, "status", "startTime")
		_, is, _ := stored.Value[string](after, "status", "startTime")
		return was && !is || watches.StatusChanged(before, after, "completionTime")
	})
}

// watcher finds the jobs that an event is about, and wakes them.
type watcher struct {
	*Reconciler
	queue queue
}

// wake wakes the jobs with an interest.
func (w watcher) wake(ctx context.Context, interest string) {
	jobs, err := w.under(ctx, interest)
	watches.Log(ctx, err, "Jobs of an event not found")
	for _, job := range jobs {
		w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
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
// it. When the process starts, all jobs are reconciled anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				watcher{r, q}.node(ctx, e.Object)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.nodeImages.Forget(types.NamespacedName{Name: e.Object.GetName()})
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
			for _, job := range imagepull.Changed(before, after) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: job.Namespace, Name: job.Name}})
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
	w.wakeAffected(ctx, imagepull.InPods(some.Namespace), func(rule *imagepull.Rule) bool {
		return rule.SelectsAnother(before, after)
	})
}

// usersOf returns the jobs under way that name a secret, each as namespace/name.
func (r *Reconciler) usersOf(ctx context.Context, secret types.NamespacedName) ([]string, error) {
	jobs, err := r.under(ctx, imagepull.InSecret(secret.Namespace, secret.Name))
	users := make([]string, len(jobs))
	for i, job := range jobs {
		users[i] = client.ObjectKeyFromObject(job).String()
	}
	return users, err
}

// copyEvents requeues the jobs that use a copy when another client changes or deletes the copy.
func (r *Reconciler) copyEvents() handler.TypedEventHandler[*corev1.Secret, reconcile.Request] {
	wake := func(s *corev1.Secret, q queue) {
		for _, user := range pullsecrets.UsersOf(s) {
			q.Add(reconcile.Request{NamespacedName: user})
		}
	}
	return handler.TypedFuncs[*corev1.Secret, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Secret], q queue) {
			if !pullsecrets.Same(e.ObjectOld, e.ObjectNew) {
				wake(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Secret], q queue) {
			r.secrets.Forget(e.Object)
			wake(e.Object, q)
		},
	}
}

// refreshSecrets refreshes the copies of pull secrets periodically, and requeues the jobs that use them.
func (r *Reconciler) refreshSecrets(ctx context.Context, q queue) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		secrets, err := r.namedSecrets(ctx)
		if err == nil {
			err = r.secrets.Refresh(ctx, secrets, func(user types.NamespacedName) {
				q.Add(reconcile.Request{NamespacedName: user})
			})
		}
		watches.Log(ctx, err, "Pull secrets not refreshed")
	}, r.options.SecretPeriod)
	return nil
}

// namedSecrets returns the secrets that jobs under way name, and that are to be copied.
func (r *Reconciler) namedSecrets(ctx context.Context) (secrets []types.NamespacedName, err error) {
	jobs, err := r.under(ctx, imagepull.InSecrets)
	for _, raw := range jobs {
		if job := stored.Whole[pullJob](raw); job != nil {
			for _, name := range imagepull.PullSecretsOf(job) {
				secrets = append(secrets, types.NamespacedName{Namespace: job.Namespace, Name: name})
			}
		}
	}
	return secrets, err
}

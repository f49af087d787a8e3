package imagepulljob

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// nodeField is the name of the index of pods by their node. Where several reconcilers of one manager ask for it, it is the
// same.
const nodeField = "kruisekit.dev/node"

func indexNodes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, nodeField, func(o client.Object) []string {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	})
	if err != nil && strings.Contains(err.Error(), "indexer conflict") {
		return nil
	}
	return err
}

// withoutProgress leaves out what a pass writes into the status of its job.
func withoutProgress() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*unstructured.Unstructured)
		after, also := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !also || before.GetResourceVersion() == after.GetResourceVersion() {
			return true
		}
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			lost(before, after, "startTime") || lost(before, after, "completionTime")
	}}
}

// lost says that a part of the status is no more, as when somebody has the job run again.
func lost(before, after *unstructured.Unstructured, field string) bool {
	_, was, _ := unstructured.NestedString(before.Object, "status", field)
	_, is, _ := unstructured.NestedString(after.Object, "status", field)
	return was && !is
}

// watcher finds the jobs that an event is about, and wakes them.
type watcher struct {
	*Reconciler
	queue queue
}

// wake wakes the jobs with a key that satisfy a condition.
func (w watcher) wake(ctx context.Context, key string, when func(*v1beta1.ImagePullJob) bool) {
	jobs, err := w.under(ctx, key)
	logged(ctx, err, "Jobs of an event not found")
	for _, job := range jobs {
		if when == nil || when(job) {
			w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
}

// nodeEvents: a NodeImage that comes or goes is for those who select it, and what changes in it for those who asked for it.
// When the process starts, all jobs are looked at anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				watcher{r, q}.node(ctx, e.Object)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.nodeWrites.Forget(types.NamespacedName{Name: e.Object.GetName()})
			r.images.forget(e.Object.GetName())
			watcher{r, q}.node(ctx, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			w := watcher{r, q}
			before, after := r.images.of(e.ObjectOld), r.images.of(e.ObjectNew)
			if before == nil || after == nil {
				// Those whose NodeImage could not be decoded, and now can be, or the other way round.
				if before != nil || after != nil {
					w.node(ctx, e.ObjectNew)
				}
				return
			}
			if !apiequality.Semantic.DeepEqual(before.Labels, after.Labels) {
				w.wake(ctx, keyLabels, func(job *v1beta1.ImagePullJob) bool {
					s := &job.Spec.Selector.LabelSelector
					return matches(s, before.Labels) != matches(s, after.Labels)
				})
			}
			for ref, owners := range changed(before, after) {
				w.wake(ctx, keyOfImage(ref), func(job *v1beta1.ImagePullJob) bool { return owners[job.UID] })
			}
		},
	}
}

// node wakes all who select a node.
func (w watcher) node(ctx context.Context, node client.Object) {
	w.wake(ctx, keyAllNodes, nil)
	w.wake(ctx, keyOfNode(node.GetName()), nil)
	w.wake(ctx, keyLabels, func(job *v1beta1.ImagePullJob) bool {
		return matches(&job.Spec.Selector.LabelSelector, node.GetLabels())
	})
	var pods corev1.PodList
	err := w.client.List(ctx, &pods, client.MatchingFields{nodeField: node.GetName()}, client.UnsafeDisableDeepCopy)
	logged(ctx, err, "Pods of a node not found")
	for i := range pods.Items {
		w.pod(ctx, nil, &pods.Items[i])
	}
}

// podEvents: a pod is for the jobs of its namespace that count it, or no longer do.
func (r *Reconciler) podEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok && !e.IsInInitialList {
				watcher{r, q}.pod(ctx, nil, pod)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				watcher{r, q}.pod(ctx, pod, nil)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			if ok && also {
				watcher{r, q}.pod(ctx, before, after)
			}
		},
	}
}

// pod wakes the jobs that a change of a pod is about. One of both is nil where there was none, or is none.
func (w watcher) pod(ctx context.Context, before, after *corev1.Pod) {
	was, is := counts(before), counts(after)
	some := after
	switch {
	case !was && !is:
		return
	case was && is && before.Spec.NodeName == after.Spec.NodeName && apiequality.Semantic.DeepEqual(before.Labels, after.Labels):
		return
	case was:
		some = before
	}
	w.wake(ctx, keyOfPods(some.Namespace), func(job *v1beta1.ImagePullJob) bool {
		s := &job.Spec.PodSelector.LabelSelector
		picked, picks := was && matches(s, before.Labels), is && matches(s, after.Labels)
		return picked != picks || picks && before.Spec.NodeName != after.Spec.NodeName
	})
}

// counts says whether a pod stands for its node: it is there and has one, and has neither ended nor is it on its way out.
func counts(p *corev1.Pod) bool {
	return p != nil && p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// copyEvents: a copy that somebody else has changed, or has deleted, is for those who use it.
func copyEvents() handler.TypedEventHandler[*corev1.Secret, reconcile.Request] {
	wake := func(s *corev1.Secret, q queue) {
		for _, user := range usersOf(s) {
			q.Add(reconcile.Request{NamespacedName: nameOf(user)})
		}
	}
	return handler.TypedFuncs[*corev1.Secret, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Secret], q queue) {
			if !sameSecret(e.ObjectOld, e.ObjectNew) {
				wake(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Secret], q queue) { wake(e.Object, q) },
	}
}

package resourcedistribution

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/internal/distribution"
)

// selections are the targets of distributions, by name.
type selections struct {
	mu  sync.Mutex
	all map[string]*distribution.Targets
}

// set notes targets; nil for those that cannot be read.
func (s *selections) set(name string, t *distribution.Targets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*distribution.Targets{}
	}
	s.all[name] = t
}

func (s *selections) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

// of are the distributions of which a namespace is a target with any of these labels.
func (s *selections) of(namespace string, labels ...map[string]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, targets := range s.all {
		if targets != nil && slices.ContainsFunc(labels, func(l map[string]string) bool { return targets.Match(namespace, l) }) {
			names = append(names, name)
		}
	}
	return names
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// namespaceEvents requeues the distributions of which a namespace is or was a target.
func (r *Reconciler) namespaceEvents() handler.EventHandler {
	requeue := func(q queue, o client.Object, labels ...map[string]string) {
		for _, name := range r.targets.of(o.GetName(), labels...) {
			q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { requeue(q, e.Object, e.Object.GetLabels()) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { requeue(q, e.Object, e.Object.GetLabels()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld, e.ObjectNew
			terminates := before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil
			if terminates || !maps.Equal(before.GetLabels(), after.GetLabels()) {
				requeue(q, after, before.GetLabels(), after.GetLabels())
			}
		},
	}
}

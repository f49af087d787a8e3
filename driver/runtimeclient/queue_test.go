package runtimeclient_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
)

// A request comes back when the reconciler asked for it, also where another part of the pass failed and the back-off of
// the controller is far longer.
func TestErrorBesideRequeue(t *testing.T) {
	var queue runtimeclient.Queue
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "web"}}
	passes := make(chan struct{}, 8)
	c, err := controller.NewUnmanaged("requeue", controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Hour, time.Hour),
		Reconciler: reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			passes <- struct{}{}
			return queue.Result(request, 10*time.Millisecond, errors.New("a write was refused"))
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	first := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		q.Add(request)
		return nil
	})
	for _, s := range []source.Source{&queue, first} {
		if err := c.Watch(s); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	go func() { ended <- c.Start(ctx) }()
	for pass := range 2 {
		select {
		case <-passes:
		case <-ctx.Done():
			t.Errorf("pass %d does not come", pass+1)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestResult(t *testing.T) {
	var queue runtimeclient.Queue // of a controller that has not started
	failed := errors.New("failed")
	if result, err := queue.Result(ctrl.Request{}, time.Second, nil); result.RequeueAfter != time.Second || err != nil {
		t.Errorf("without an error: %v, %v", result, err)
	}
	if result, err := queue.Result(ctrl.Request{}, time.Second, failed); result != (ctrl.Result{}) ||
		!errors.Is(err, failed) {
		t.Errorf("with an error: %v, %v", result, err)
	}
}

// The request of another object is reconciled by a controller that runs, and dropped before.
func TestRequeue(t *testing.T) {
	var queue runtimeclient.Queue
	other := ctrl.Request{NamespacedName: types.NamespacedName{Name: "other"}}
	queue.Requeue(other)
	inner := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer inner.ShutDown()
	if err := queue.Start(t.Context(), inner); err != nil || inner.Len() != 0 {
		t.Fatalf("%d requests from before the start, %v", inner.Len(), err)
	}
	queue.Requeue(other)
	if got, _ := inner.Get(); got != other {
		t.Errorf("got %v", got)
	}
}

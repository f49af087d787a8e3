package process

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The controllers promise pauses of at most a minute between attempts that fail. The flag changes that.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		args []string
		want time.Duration
	}{
		"default": {"a user waits for as long after a quota has grown", nil, time.Minute},
		"flag":    {"the flag of the reference still counts", []string{"--rate-limiter-max-delay=1000s"}, 1000 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsOf(t, c.args...)
			limiter := controllerOptions(o)("cloneset").RateLimiter
			var pause time.Duration
			for range 40 {
				pause = limiter.When(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}})
			}
			if pause != c.want {
				t.Errorf("%s: the longest pause is %s, want %s", c.why, pause, c.want)
			}
		})
	}
}

// An item is handed out when its pause is over, and does not wait for a tick of the metrics.
func TestQueue(t *testing.T) {
	item := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	q := newQueue("cloneset", limiter)
	defer q.ShutDown()
	q.AddAfter(item, 10*time.Millisecond)
	stop := time.AfterFunc(tick/2, q.ShutDown)
	defer stop.Stop()
	if got, over := q.Get(); got != item || over {
		t.Errorf("got %v, %t", got, over)
	}
}

// The clock of queues ticks seldom, and no more often than it is asked to.
func TestSlowTicker(t *testing.T) {
	ticker, end := slowTicker{}.NewTicker(time.Millisecond), time.NewTimer(100*time.Millisecond)
	defer ticker.Stop()
	defer end.Stop()
	select {
	case <-ticker.C():
		t.Errorf("it ticks before %s", tick)
	case <-end.C:
	}
}

package binding_test

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
)

// An object that fails is tried again soon, and at least once a minute for ever.
func TestPauses(t *testing.T) {
	o := binding.ControllerOptions(controller.Options{})
	if !*o.SkipNameValidation {
		t.Error("a second manager cannot have the controller")
	}
	var object reconcile.Request
	last := time.Duration(0)
	for i := range 100 {
		pause := o.RateLimiter.When(object)
		if pause < last || i == 0 && pause != 5*time.Millisecond || i > 20 && pause != time.Minute {
			t.Fatalf("pause %d is %s, after %s", i, pause, last)
		}
		last = pause
	}
	o.RateLimiter.Forget(object)
	if pause := o.RateLimiter.When(object); pause != 5*time.Millisecond {
		t.Errorf("after a success the first pause is %s", pause)
	}
}

// What is set stays.
func TestSet(t *testing.T) {
	limiter := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	o := binding.ControllerOptions(controller.Options{
		SkipNameValidation: ptr.To(false), RateLimiter: limiter, MaxConcurrentReconciles: 7,
	})
	if *o.SkipNameValidation || o.RateLimiter != limiter || o.MaxConcurrentReconciles != 7 {
		t.Errorf("%+v", o)
	}
}

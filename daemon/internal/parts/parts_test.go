package parts_test

import (
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
)

// A runtime that is away is asked again after the same pause each time; other failures are for the queue.
func TestRetry(t *testing.T) {
	broken := errors.New("broken")
	if result, err := parts.Retry(t.Context(), broken); !errors.Is(err, broken) || result.RequeueAfter != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	away := errors.Join(broken, fmt.Errorf("list containers: %w", cri.ErrUnavailable))
	if result, err := parts.Retry(t.Context(), away); err != nil || result.RequeueAfter <= 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestOptions(t *testing.T) {
	o := parts.Options(controller.Options{MaxConcurrentReconciles: 3})
	request := reconcile.Request{}
	if *o.NeedLeaderElection || o.MaxConcurrentReconciles != 3 || o.RateLimiter.When(request) != parts.LeastPause {
		t.Errorf("got %+v", o)
	}
}

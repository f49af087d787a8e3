package podprobe

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// additions counts the requests that are added to a queue.
type additions struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added atomic.Int32
}

func (p *additions) Add(reconcile.Request) { p.added.Add(1) }

// Results of the same moment have one pass, and a later one has another.
func TestWake(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		r, queue := newWorld(t, asking(1, nil)).r, &additions{}
		if err := r.api.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		for want, results := range []int{0, 3, 1} {
			for range results {
				r.wake()
				time.Sleep(gather / 4) //nolint:forbidigo // the time of the bubble
			}
			time.Sleep(gather) //nolint:forbidigo // as above
			bubbletest.Wait()
			if got := queue.added.Load(); int(got) != want {
				t.Errorf("%d passes, want %d", got, want)
			}
		}
	})
}

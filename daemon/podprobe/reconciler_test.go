package podprobe

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
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

// Nothing is written for a node without a NodePodProbe, and for another node.
func TestOtherObjects(t *testing.T) {
	w := newWorld(t, &v1alpha1.NodePodProbe{})
	if _, err := w.r.Reconcile(t.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Name: "node-2"}}); err != nil {
		t.Error(err)
	}
	if err := w.server.Delete(t.Context(), w.stored()); err != nil {
		t.Fatal(err)
	}
	w.tick(time.Second)
	if n := w.writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
	for _, bad := range []func() (*Reconciler, error){
		func() (*Reconciler, error) { return New(nil, "node-1", w.node, Options{}) },
		func() (*Reconciler, error) { return New(w.server, "", w.node, Options{}) },
		func() (*Reconciler, error) { return New(w.server, "node-1", nil, Options{}) },
	} {
		if r, err := bad(); err == nil {
			t.Errorf("made %v", r)
		}
	}
}

// The loop itself runs probes with the clock of the machine, ends with its context, and survives a panic.
func TestWork(t *testing.T) {
	results := make(chan struct{}, 100)
	fails := commands(func(cri.Command) (cri.Output, error) { panic("a fault of the runtime's client") })
	p := newProber(running{fails}, time.Now, func() { results <- struct{}{} })
	n := asking(1, map[string]int{"a": 1})
	tcp := n.Spec.PodProbes[0]
	tcp.UID, tcp.IP = "tcp", "127.0.0.1"
	tcp.Probes = []v1alpha1.ContainerProbe{{Name: "m#tcp", ContainerName: "main"}}
	tcp.Probes[0].Probe.TCPSocket = &corev1.TCPSocketAction{Port: closedPort(t)}
	n.Spec.PodProbes = append(n.Spec.PodProbes, tcp)
	p.sync(n)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { p.work(ctx); close(ended) }()
	late, forget := context.WithTimeout(ctx, time.Minute)
	defer forget()
	select {
	case <-results:
	case <-late.Done():
		t.Error("no result in a minute")
	}
	cancel()
	<-ended
}

// running has one container for each query.
type running struct{ commands }

func (running) Containers(_ context.Context, q cri.Query) ([]cri.Container, error) {
	return []cri.Container{{ID: q.PodUID, Name: q.Name, State: cri.Running, StartedAt: start.Add(-100 * time.Hour)}}, nil
}

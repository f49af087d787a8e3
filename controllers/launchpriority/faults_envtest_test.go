//go:build envtest

package launchpriority_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/controllers/launchpriority"
)

var seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")

// staleReader has a pod as it was.
type staleReader struct {
	client.Client

	stale *corev1.Pod
}

func (s staleReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if pod, is := o.(*corev1.Pod); is && key == client.ObjectKeyFromObject(s.stale) {
		s.stale.DeepCopyInto(pod)
		return nil
	}
	return s.Client.Get(ctx, key, o, opts...)
}

// faults make every third request about an object or so fail, before it is applied or after it. Which one is, depends on the
// seed and the number of the request alone.
type faults struct {
	mu     sync.Mutex
	number map[string]int
	made   map[string]int
	seed   int64
}

var errFault = errors.New("the connection broke")

func (f *faults) do(object string, request func() error) error {
	f.mu.Lock()
	f.number[object]++
	h := fnv.New32a()
	fmt.Fprint(h, f.seed, object, f.number[object])
	kind := h.Sum32() % 6
	if kind < 2 {
		f.made[[]string{"before", "after"}[kind]]++
	}
	f.mu.Unlock()
	if kind == 0 {
		return errFault
	}
	if err := request(); err != nil {
		return err
	}
	if kind == 1 {
		return errFault
	}
	return nil
}

func (f *faults) around(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return f.do(key.Name, func() error { return c.Get(ctx, key, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return f.do(o.GetName(), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.do(o.GetName(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.do(o.GetName(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
	})
}

// Whatever is lost, on the way to the API server or back, every pod starts in its order, also over the barrier of a former one.
func TestFaults(t *testing.T) {
	b := newBench(t)
	f := &faults{number: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	t.Logf("repeat with -seed %d", f.seed)
	b.reconcile(launchpriority.Options{}, f.around)
	for round := range 2 {
		for i := range 8 {
			pod := b.pod(fmt.Sprintf("web-%d", i), nil, "Ordered", "Ordered", "Ordered")
			b.has(pod, "p_0")
			if got := fmt.Sprint(b.kubelet(pod)); got != "[a b c]" {
				t.Errorf("round %d: %s starts as %s", round, pod.Name, got)
			}
			b.complete(pod)
			b.Gone(pod)
		}
	}
	if f.made["before"] == 0 || f.made["after"] == 0 {
		t.Errorf("faults: %v", f.made)
	}
	t.Logf("faults: %v", f.made)
}

//go:build envtest

package sidecarterminator_test

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

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
)

var seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")

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
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return f.do(o.GetName(), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.do(o.GetName(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.do(o.GetName(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return f.do(o.GetName(), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// Whatever is lost, on the way to the API server or back, every sidecar is asked to stop in its turn.
func TestFaults(t *testing.T) {
	b := newBench(t, nil)
	f := &faults{number: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	t.Logf("repeat with -seed %d", f.seed)
	b.reconcile(sidecarterminator.Options{}, f.around)
	var pods []*corev1.Pod
	for i := range 15 {
		pods = append(pods, b.pod(fmt.Sprintf("job-%d", i), corev1.RestartPolicyNever, []string{kill}, []string{kill, ignore}))
	}
	for _, pod := range pods {
		b.end(pod, 0, "app")
	}
	for _, pod := range pods {
		b.asks(pod, "s1")
		b.end(pod, 0, "s1")
	}
	for _, pod := range pods {
		b.asks(pod, "s2")
		if err := b.Look(pod); err != nil || pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("%s is %s: %v", pod.Name, pod.Status.Phase, err)
		}
	}
	if f.made["before"] == 0 || f.made["after"] == 0 {
		t.Errorf("faults: %v", f.made)
	}
	t.Logf("faults: %v", f.made)
}

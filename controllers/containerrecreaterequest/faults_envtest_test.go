//go:build envtest

package containerrecreaterequest_test

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

	"github.com/kruisekit/kruisekit/controllers/containerrecreaterequest"
)

var (
	runs = flag.Int("runs", 20, "how many requests are led through faults")
	seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")
)

// faults make every third request about an object or so fail: before it is applied, after it, or late. Which one is,
// depends on the seed and the number of the request alone.
type faults struct {
	mu     sync.Mutex
	number map[string]int
	made   map[string]int
	seed   int64
}

var errFault = errors.New("the connection broke")

// fault is what happens to the next request about an object.
func (f *faults) fault(object string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.number[object]++
	h := fnv.New32a()
	fmt.Fprint(h, f.seed, object, f.number[object])
	what := []string{"before", "after", "late"}
	kind := h.Sum32() % 9
	if kind >= uint32(len(what)) {
		return ""
	}
	f.made[what[kind]]++
	return what[kind]
}

// do makes a request with its fault.
func (f *faults) do(object string, request func() error) error {
	switch f.fault(object) {
	case "before":
		return errFault
	case "after":
		if err := request(); err != nil {
			return err
		}
		return errFault
	case "late":
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a slow API server
	}
	return request()
}

// live reads past the cache, with faults.
func (f *faults) live(b *bench) client.Reader {
	c, err := client.NewWithWatch(b.config, client.Options{Scheme: b.scheme})
	if err != nil {
		b.Fatal(err)
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			return f.do(key.Name, func() error { return c.Get(ctx, key, o, opts...) })
		},
	})
}

// Whatever is lost, on the way to the API server or back, no request is lost, and nothing is done twice.
func TestFaults(t *testing.T) {
	t.Parallel()
	f := &faults{number: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	t.Logf("repeat with -seed %d", f.seed)
	b := newBench(t)
	h := b.history()
	b.patience += time.Duration(*runs) * time.Second // three workers for all of them
	b.reconcile(containerrecreaterequest.Options{Live: f.live(b)}, func(c client.WithWatch) client.Client {
		return around(c, f.do)
	})
	b.node.serve()
	pods, all := make([]*corev1.Pod, *runs), make([]*request, *runs)
	for i := range all {
		pods[i] = b.pod(fmt.Sprintf("web-%d", i), gated)
		all[i] = b.ask(fmt.Sprintf("again-%d", i), pods[i], grace(0), func(r *request) {
			if i%2 == 0 {
				ttl(1)(r)
			}
		})
	}
	for i, r := range all {
		if i%2 == 0 {
			b.goes(r)
			b.podReady(pods[i])
		} else {
			b.wholesome(r, pods[i])
		}
	}
	for i, r := range all {
		if at := b.node.kills(r, "app"); len(at) != 1 {
			t.Errorf("%s: stopped at %v", r.Name, at)
		}
		b.until(func() error { return h.complete(r, i%2 == 0) })
		h.check(r, pods[i])
	}
	t.Logf("faults: %v", f.made)
}

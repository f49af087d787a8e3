//go:build envtest

package cloneset_test

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

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

var (
	runs = flag.Int("runs", 40, "how many sets are led through faults")
	seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")
)

// faults make every third write or so of a set fail: before it is applied, after it, or late. Which one is, depends on
// the seed and the number of the write alone.
type faults struct {
	mu     sync.Mutex
	writes map[string]int
	made   map[string]int
	seed   int64
}

var errFault = errors.New("the connection broke")

// fault is what happens to the next write of an object's set.
func (f *faults) fault(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[name]++
	h := fnv.New32a()
	fmt.Fprint(h, f.seed, name, f.writes[name])
	what := []string{"before", "after", "late"}
	kind := h.Sum32() % 9
	if kind >= uint32(len(what)) || f.writes[name] > 4 {
		return ""
	}
	f.made[what[kind]]++
	return what[kind]
}

// do makes a write with its fault.
func (f *faults) do(name string, write func() error) error {
	switch f.fault(name) {
	case "before":
		return errFault
	case "after":
		if err := write(); err != nil {
			return err
		}
		return errFault
	case "late":
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a slow API server
	}
	return write()
}

func (f *faults) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return f.do("create/"+o.GetName(), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.do("delete/"+o.GetName(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.do("patch/"+o.GetName(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return f.do(sub+"/"+o.GetName(), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// Whatever write is lost, before it is applied or after, nothing is lost and nothing is made twice.
func TestFaults(t *testing.T) {
	f := &faults{writes: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	t.Logf("repeat with -seed %d", f.seed)
	b := startWith(t, cloneset.Options{}, f.client)
	b.patience += time.Duration(*runs) * time.Second // two workers for all of them
	sets := make([]*v1beta1.CloneSet, *runs)
	for i := range sets {
		sets[i] = b.create(fmt.Sprintf("web-%d", i), 3, func(s *v1beta1.CloneSet) {
			inPlace(s)
			withClaims(s)
		})
	}
	first := map[string]map[string]bool{}
	for _, set := range sets {
		b.eventually(set, settled)
		first[set.Name] = uids(b.pods(set))
		b.change(set, image("web:2"))
	}
	for _, set := range sets {
		b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
			for i := range pods {
				if s := pods[i].Status.ContainerStatuses[0]; s.Image != "web:2" || s.RestartCount != 1 {
					return fmt.Errorf("%s runs %s after %d restarts", pods[i].Name, s.Image, s.RestartCount)
				}
			}
			return settled(set, pods)
		})
		if after := uids(b.pods(set)); fmt.Sprint(after) != fmt.Sprint(first[set.Name]) {
			t.Errorf("%s: pods %v became %v", set.Name, first[set.Name], after)
		}
	}
	if got, want := len(b.claims()), 3**runs; got != want {
		t.Errorf("%d claims, want %d: some are made twice, or lost", got, want)
	}
	if made := b.madePods(); made != 3**runs {
		t.Errorf("%d pods were made, want %d", made, 3**runs)
	}
	t.Logf("faults: %v", f.made)
}

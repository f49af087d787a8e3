//go:build envtest

package imagelistpulljob_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

var (
	runs = flag.Int("runs", 12, "how many lists are led through faults")
	seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")
)

// flaky makes some of the first writes of each object fail: before they are applied, after it, or late. Which ones, depends on
// the seed and the number of the write alone.
type flaky struct {
	mu     sync.Mutex
	writes map[string]int
	made   map[string]int
	seed   int64
}

var errFault = errors.New("the connection broke")

func (f *flaky) fault(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[name]++
	h := fnv.New32a()
	fmt.Fprint(h, f.seed, name, f.writes[name])
	what := []string{"before", "after", "late"}
	kind := h.Sum32() % 6
	if kind >= uint32(len(what)) || f.writes[name] > 4 {
		return ""
	}
	f.made[what[kind]]++
	return what[kind]
}

func (f *flaky) do(name string, write func() error) error {
	switch f.fault(name) {
	case "before":
		return errFault
	case "after":
		return errors.Join(write(), errFault)
	case "late":
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a slow API server
	}
	return write()
}

func (f *flaky) client(c client.WithWatch) client.Client {
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

// Whatever write is lost, before it is applied or after: each image has one job, made once, and the list comes to its end and
// leaves.
func TestFaults(t *testing.T) {
	f := &flaky{writes: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	t.Logf("repeat with -seed %d", f.seed)
	b := newBench(t)
	b.start(f.client)
	var lists []*v1beta1.ImageListPullJob
	for i := range *runs {
		lists = append(lists, b.create(fmt.Sprint("list-", i), []string{"a:1", "b:1", "c:1"}))
	}
	for _, list := range lists {
		b.hasJobs(list, "a:1", "b:1", "c:1")
		b.change(list, func(l *v1beta1.ImageListPullJob) {
			l.Spec.Images = []string{"c:1", "d:1"}
			l.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](0)
		})
	}
	for _, list := range lists {
		var jobs map[string]*v1beta1.ImagePullJob
		b.until(func() (err error) {
			if jobs, err = b.jobs(list); err != nil || len(jobs) != 2 || jobs["c:1"] == nil || jobs["d:1"] == nil ||
				slices.ContainsFunc([]string{"c:1", "d:1"}, func(i string) bool { return jobs[i].Spec.CompletionPolicy.TTLSecondsAfterFinished == nil }) {
				return fmt.Errorf("jobs %v: %w", jobs, err)
			}
			return nil
		})
		for _, job := range jobs {
			b.does(job, 1, 0, 1, 0)
		}
	}
	for _, list := range lists {
		b.gone(list)
	}
	if made := about(b.requests.take(), "POST imagepulljobs 201"); len(made) != 5**runs {
		t.Errorf("%d jobs were made, want %d", len(made), 5**runs)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("faults: %v", f.made)
}

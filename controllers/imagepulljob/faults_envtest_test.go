//go:build envtest

package imagepulljob_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
)

var (
	runs = flag.Int("runs", 12, "how many jobs are led through faults")
	seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")
)

// faults make every third write or so fail: before it is applied, after it, or late. Which one is, depends on the seed,
// the object and the number of the write alone.
type faults struct {
	mu     sync.Mutex
	writes map[string]int
	made   map[string]int
	seed   int64
	// prefix of the names of nodes, which is another one each time.
	prefix string
}

var errFault = errors.New("the connection broke")

func (f *faults) fault(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = strings.Replace(name, f.prefix, "", 1)
	f.writes[name]++
	h := fnv.New32a()
	fmt.Fprint(h, f.seed, name, f.writes[name])
	what := []string{"before", "after", "late"}
	kind := h.Sum32() % 9
	if kind >= uint32(len(what)) || f.writes[name] > 12 {
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
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return f.do("update/"+o.GetName(), func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.do("delete/"+o.GetName(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return f.do("patch/"+o.GetName(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return f.do(sub+"/"+o.GetName(), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// Whatever write is lost, before it is applied or after: every node pulls once, secrets are copied once and released,
// and what has an end ends.
func TestFaults(t *testing.T) {
	f := &faults{writes: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	t.Logf("repeat with -seed %d", f.seed)
	b := startWith(t, imagepulljob.Options{}, f.client)
	f.mu.Lock()
	f.prefix = b.namespace
	f.mu.Unlock()
	b.patience += time.Duration(*runs) * time.Second
	b.have(4)
	b.secret("login", `{}`)
	jobs := make([]*v1beta1.ImagePullJob, *runs)
	for i := range jobs {
		jobs[i] = b.create(fmt.Sprintf("job-%d", i), fmt.Sprintf("app:%d", i), parallel(int32(1+i%3)), secrets("login"))
	}
	for _, job := range jobs {
		b.status(job, "4/0/4/0", "job has completed")
	}
	b.copied()
	for n := range 4 {
		for _, tag := range b.nodeImage(n + 1).Spec.Images["app"].Tags {
			if tag.Version != 0 || len(tag.OwnerReferences) != 1 {
				t.Errorf("node %d: tag %+v was asked for twice", n+1, tag)
			}
		}
	}
	for _, job := range jobs {
		b.until(func() error {
			return b.unheld(job)
		})
	}
	t.Logf("faults: %v", f.made)
}

// A process that ends in the middle leaves nothing behind that the next one does not take up, and nothing is done
// twice.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(b.config, b.nodes.add)
	b.have(6)
	b.secret("login", `{}`)
	b.nodes.tell("nginx:1", v1beta1.ImagePhasePulling)
	stop := b.reconcile(imagepulljob.Options{}, plain)
	job := b.create("web", "nginx:1", parallel(2), secrets("login"))
	gone := b.create("gone", "nginx:2", parallel(2), secrets("login"), never)
	b.status(job, "6/2/0/0", "job is running, progress 0.0%")
	b.copied(`login {} gone,web`)
	stop()
	b.nodes.tell("nginx:1", v1beta1.ImagePhaseSucceeded)
	// No finalizer holds it any more, and what it used is not released.
	b.change(gone, func(j *v1beta1.ImagePullJob) { j.Finalizers = nil })
	if err := b.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	b.reconcile(imagepulljob.Options{}, plain)
	b.status(job, "6/0/6/0", "job has completed")
	for n := range 6 {
		if tag := b.nodeImage(n + 1).Spec.Images["nginx"].Tags[0]; tag.Version != 0 || len(tag.OwnerReferences) != 1 {
			t.Errorf("node %d: tag %+v was asked for twice", n+1, tag)
		}
	}
}

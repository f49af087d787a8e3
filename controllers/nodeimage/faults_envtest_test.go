//go:build envtest

package nodeimage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/imagepull"
)

var (
	runs = flag.Int("runs", 20, "how many nodes are led through faults")
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

// Whatever write is lost, before it is applied or after: nodes have their NodeImages, tags leave with their jobs and no others
// do, daemons are heard, and silent nodes fail.
func faults(b *bench) {
	f := &flaky{writes: map[string]int{}, made: map[string]int{}, seed: *seed}
	if f.seed == 0 {
		f.seed = time.Now().UnixNano()
	}
	b.Logf("repeat with -seed %d", f.seed)
	b.startWith(nodeimage.Options{}, f.client)
	b.daemons(func(ref imagepull.Reference) bool { return ref.Tag == "2" })
	stays, goes := b.job("stays"), b.job("goes")
	nodes := map[string]*corev1.Node{}
	for i := range *runs {
		nodes[fmt.Sprint(i)] = b.node(fmt.Sprint(i))
	}
	for short := range nodes {
		image := b.eventually(short, exists)
		change(b, image, b.tag("1", stays, goes), b.tag("2", stays), b.tag("3", goes))
		change(b, nodes[short], func(n *corev1.Node) { n.Labels["zone"] = "b" })
	}
	b.remove(goes)
	last := fmt.Sprint(*runs - 1)
	b.remove(nodes[last])
	delete(nodes, last)
	b.gone(last)
	for short, node := range nodes {
		b.eventually(short, func(n *v1beta1.NodeImage) error {
			if !maps.Equal(n.Labels, node.Labels) || n.Status.Succeeded != 1 || n.Status.Failed != 1 {
				return fmt.Errorf("labels %v, status %+v", n.Labels, n.Status)
			}
			return lists("nginx:1 nginx:2")(n)
		})
	}
	b.still()
	if made := about(b.requests.take(), "POST v1beta1/nodeimages 201"); len(made) != *runs {
		b.Errorf("%d were made, want %d", len(made), *runs)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Logf("faults: %v", f.made)
}

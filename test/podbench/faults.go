package podbench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	// faulty are the requests of a kind about an object that may go wrong, so that there is an end to it.
	faulty = 6
	// slow is how long a late request takes.
	slow = 20 * time.Millisecond
)

// ErrFault is what a request gives that Faults has fail.
var ErrFault = errors.New("the connection broke")

// Writes gives a client whose writes go through something. A write is named create/NAME, delete/NAME or patch/NAME, and
// the patch of a subresource with its name in the place of the verb.
func Writes(c client.WithWatch, through func(what string, write func() error) error) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return through("create/"+o.GetName(), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return through("delete/"+o.GetName(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return through("patch/"+o.GetName(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return through(sub+"/"+o.GetName(), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// Reads gives a client whose reads of single objects go through something, which are named get/NAME.
func Reads(c client.WithWatch, through func(what string, read func() error) error) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			return through("get/"+key.Name, func() error { return c.Get(ctx, key, o, opts...) })
		},
	})
}

// Faults make every second or so of the first requests of a kind about an object go wrong. Which one does, and how,
// depends on the seed and the number of the request alone, except that the first two requests of all have one of each
// kind that the test counts.
type Faults struct {
	seed int64
	// prefix of names, which is another one each time.
	prefix string

	mu    sync.Mutex
	all   int
	asked map[string]int
	made  map[string]int
}

// Faults of a seed; 0 for new ones. A test that ends without any fault has shown nothing and fails.
func (b *Bench) Faults(seed int64) *Faults {
	b.Helper()
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	b.Logf("repeat with -seed %d", seed)
	f := &Faults{seed: seed, prefix: b.Namespace, asked: map[string]int{}, made: map[string]int{}}
	b.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		b.Logf("faults: %v", f.made)
		if f.made["before"] == 0 || f.made["after"] == 0 {
			b.Error("not every kind of fault was made")
		}
	})
	return f
}

// Do makes a request with its fault: it is never applied, or its answer is lost, or it is late. It is made for Writes
// and Reads.
func (f *Faults) Do(what string, request func() error) error {
	switch f.next(what) {
	case "before":
		return ErrFault
	case "after":
		if err := request(); err != nil {
			return err
		}
		return ErrFault
	case "late":
		time.Sleep(slow) //nolint:forbidigo // an API server that takes its time
	}
	return request()
}

// next is the fault of the next request of a kind; empty for none.
func (f *Faults) next(what string) string {
	what = strings.Replace(what, f.prefix, "", 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[what]++
	f.all++
	h := fnv.New32a()
	fmt.Fprint(h, f.seed, what, f.asked[what])
	kinds := []string{"before", "after", "late"}
	kind := int(h.Sum32() % 6)
	if f.all <= 2 {
		kind = f.all - 1
	}
	if kind >= len(kinds) || f.asked[what] > faulty {
		return ""
	}
	f.made[kinds[kind]]++
	return kinds[kind]
}

//go:build envtest

package nodeimage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// eventually waits for the NodeImage of a node to be as wanted.
func (b *bench) eventually(short string, check func(*v1beta1.NodeImage) error) *v1beta1.NodeImage {
	b.Helper()
	image := &v1beta1.NodeImage{}
	b.Until(func() error {
		*image = v1beta1.NodeImage{}
		if err := b.Client.Get(b.Context(), client.ObjectKey{Name: b.name(short)}, image); err != nil {
			return err
		}
		return check(image)
	})
	return image
}

func exists(*v1beta1.NodeImage) error { return nil }

// lists wants the tags of a NodeImage.
func lists(want string) func(*v1beta1.NodeImage) error {
	return func(n *v1beta1.NodeImage) error {
		if got := tags(n); got != want {
			return fmt.Errorf("tags %q, want %q", got, want)
		}
		return nil
	}
}

// gone waits until there is no NodeImage.
func (b *bench) gone(short string) {
	b.Helper()
	b.Until(func() error {
		var image v1beta1.NodeImage
		if err := b.Client.Get(b.Context(),
			client.ObjectKey{Name: b.name(short)}, &image); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("there is a NodeImage"), err)
		}
		return nil
	})
}

// looked waits for another pass of a node after something was done.
func (b *bench) looked(short string, do func()) {
	b.Helper()
	before := b.passes.of(b.name(short))
	do()
	b.Until(func() error {
		if b.passes.of(b.name(short)) == before {
			return errors.New("nobody has looked")
		}
		return nil
	})
}

// touch has a node looked at.
func (b *bench) touch(node *corev1.Node) {
	b.Helper()
	change(b, node, func(n *corev1.Node) { n.Labels["test.kruisekit.dev/now"] = fmt.Sprint(time.Now().UnixNano()) })
}

// events with a reason, as "kind name: message".
func (b *bench) events(reason string) []string {
	b.Helper()
	var list corev1.EventList
	if err := b.Client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	var some []string
	for _, e := range list.Items {
		if e.Reason == reason &&
			(e.InvolvedObject.Namespace == b.Namespace || strings.HasPrefix(e.InvolvedObject.Name, b.Namespace)) {
			some = append(some,
				e.InvolvedObject.Kind+" "+strings.TrimPrefix(e.InvolvedObject.Name, b.Namespace+"-")+": "+e.Message)
		}
	}
	slices.Sort(some)
	return some
}

// clock is the time of a reconciler, which the test puts forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// passes counts the passes of each node.
type passes struct {
	mu  sync.Mutex
	all map[string]int
}

func (p *passes) note(_ context.Context, node string, _ []note.Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]int{}
	}
	p.all[node]++
}

func (p *passes) of(node string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[node]
}

//go:build envtest

package nodeimage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
)

// direct is a reconciler that is called by the test, whose cache does not find some kinds.
func (b *bench) direct(kinds ...string) *nodeimage.Reconciler {
	b.Helper()
	o := nodeimage.Options{Live: b.Client}
	b.setDefaults(&o)
	c, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	r, err := nodeimage.New(interceptor.NewClient(c, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		gvk, err := c.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		if slices.Contains(kinds, gvk.Kind) {
			return apierrors.NewNotFound(schema.GroupResource{Resource: gvk.Kind}, key.Name)
		}
		return c.Get(ctx, key, o, opts...)
	}}), o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b *bench) reconcile(r *nodeimage.Reconciler, short string) error {
	b.Helper()
	_, err := b.pass(r, short)
	return err
}

// pass says after how long the next one is to be.
func (b *bench) pass(r *nodeimage.Reconciler, short string) (time.Duration, error) {
	b.Helper()
	result, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: b.name(short)}})
	return result.RequeueAfter, err
}

// What the cache does not have yet is neither deleted nor dropped, and made once.
func laggingCache(b *bench) {
	job := b.job("a")
	b.node("1")
	image := b.image("1", b.tag("1", job))
	r := b.direct("ImagePullJob")
	for range 3 {
		if err := b.reconcile(r, "1"); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.reconcile(b.direct("Node"), "1"); err != nil {
		b.Fatal(err)
	}
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if n.UID != image.UID {
			return errors.New("another one")
		}
		return lists("nginx:1")(n)
	})
	b.node("2")
	r = b.direct("NodeImage")
	for range 3 {
		if err := b.reconcile(r, "2"); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.reconcile(b.direct("NodeImage"), "2"); err != nil {
		b.Errorf("a NodeImage that somebody else has made: %v", err)
	}
}

// Where pull jobs are not installed, the jobs that asked are unknown. All else goes on.
func noPullJobs(b *bench) {
	gone := b.job("gone")
	b.remove(gone)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(v1beta1.GroupVersion.WithKind("NodeImage"), meta.RESTScopeRoot)
	b.Mapper = mapper
	b.start(nodeimage.Options{})
	node := b.node("1")
	image := b.eventually("1", exists)
	b.looked("1", func() { change(b, image, b.tag("1", gone)) })
	b.touch(node)
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if !maps.Equal(n.Labels, node.Labels) {
			return fmt.Errorf("labels %v", n.Labels)
		}
		return lists("nginx:1")(n)
	})
	b.Still()
	if n := b.passes.of(node.Name); n > 8 { // as many as there are events, at most
		b.Errorf("%d passes: something is tried over and over", n)
	}
}

// A NodeImage that goes before the cache has shown it is made again, by a pass that no event asks for.
func goneUnseen(b *bench) {
	b.node("1")
	r := b.direct("NodeImage")
	if err := b.reconcile(r, "1"); err != nil {
		b.Fatal(err)
	}
	b.remove(b.eventually("1", exists))
	after, err := b.pass(r, "1")
	if err != nil || after == 0 {
		b.Fatalf("the next pass is after %s: %v", after, err)
	}
	b.clock.advance(after)
	for range 2 {
		if err := b.reconcile(r, "1"); err != nil {
			b.Fatal(err)
		}
	}
	b.eventually("1", exists)
}

//go:build envtest

package nodeimage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
)

// hardships are caches that lag, and API servers that fail.
func hardships() map[string]func(*bench) {
	return map[string]func(*bench){
		"gone before it was seen": goneUnseen,
		"a lagging cache":         laggingCache,
		"no pull jobs":            noPullJobs,
		"own writes":              ownWrites,
		"what cannot be read":     unreadable,
		"faults":                  faults,
	}
}

// blind does not find some kinds.
func blind(c client.WithWatch, kinds map[string]bool) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			gvk, err := c.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			if kinds[gvk.Kind] {
				return apierrors.NewNotFound(schema.GroupResource{Resource: gvk.Kind}, key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// direct is a reconciler that is called by the test, whose cache does not find some kinds.
func (b *bench) direct(o nodeimage.Options, kinds ...string) *nodeimage.Reconciler {
	b.Helper()
	some := map[string]bool{}
	for _, k := range kinds {
		some[k] = true
	}
	return b.directWith(o, func(c client.WithWatch) client.WithWatch { return blind(c, some) })
}

// directWith gives it a client of another kind.
func (b *bench) directWith(o nodeimage.Options, wrap func(client.WithWatch) client.WithWatch) *nodeimage.Reconciler {
	b.Helper()
	b.setDefaults(&o)
	c, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	if o.Live == nil {
		o.Live = b.Client
	}
	r, err := nodeimage.New(wrap(c), o)
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
	r := b.direct(nodeimage.Options{}, "ImagePullJob")
	for range 3 {
		if err := b.reconcile(r, "1"); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.reconcile(b.direct(nodeimage.Options{}, "Node"), "1"); err != nil {
		b.Fatal(err)
	}
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if n.UID != image.UID {
			return errors.New("another one")
		}
		return lists("nginx:1")(n)
	})
	b.node("2")
	r = b.direct(nodeimage.Options{}, "NodeImage")
	for range 3 {
		if err := b.reconcile(r, "2"); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.reconcile(b.direct(nodeimage.Options{}, "NodeImage"), "2"); err != nil {
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

// A cache that still shows the NodeImage as it was before does not have it written again.
func ownWrites(b *bench) {
	node := b.node("1", func(n *corev1.Node) { n.Labels["zone"] = "b" })
	image := b.image("1", b.tag("1"))
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("NodeImage"))
	if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(image), old); err != nil {
		b.Fatal(err)
	}
	writes := 0
	r := b.directWith(nodeimage.Options{}, func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
			) error {
				if raw, ok := o.(*unstructured.Unstructured); ok && raw.GetKind() == old.GetKind() {
					old.DeepCopyInto(raw)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
			Patch: func(
				ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
			) error {
				writes++
				return c.Patch(ctx, o, p, opts...)
			},
		})
	})
	for range 3 {
		if err := b.reconcile(r, "1"); err != nil {
			b.Fatal(err)
		}
	}
	refresh(b, image)
	if writes != 1 || !maps.Equal(image.Labels, node.Labels) {
		b.Errorf("%d writes, labels %v", writes, image.Labels)
	}
}

// A NodeImage that goes before the cache has shown it is made again, by a pass that no event asks for.
func goneUnseen(b *bench) {
	b.node("1")
	r := b.direct(nodeimage.Options{}, "NodeImage")
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

// mute is an API server that answers with an error.
type mute struct {
	client.Reader
	err error
}

func (m mute) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return m.err
}

// Where it is unknown whether something is gone, it stays. It is asked again, unless that is forbidden.
func unreadable(b *bench) {
	gone := b.job("gone")
	b.remove(gone)
	b.node("1")
	b.image("1", b.tag("1", gone), func(n *v1beta1.NodeImage) {
		nginx := n.Spec.Images["nginx"]
		nginx.PullSecrets = []v1beta1.ReferenceObject{{Namespace: v1beta1.DefaultImagePullSecretNamespace, Name: "gone"}}
		n.Spec.Images["nginx"] = nginx
	})
	broken := errors.New("broken")
	r := b.direct(nodeimage.Options{Live: mute{err: broken}})
	if err := b.reconcile(r, "1"); !errors.Is(err, broken) {
		b.Errorf("%v, want to try again", err)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "gone", nil)
	r = b.direct(nodeimage.Options{Live: mute{err: forbidden}})
	if err := b.reconcile(r, "1"); err != nil {
		b.Errorf("%v, want no attempt again", err)
	}
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if s := n.Spec.Images["nginx"].PullSecrets; len(s) != 1 {
			return fmt.Errorf("secrets %v", s)
		}
		return lists("nginx:1")(n)
	})
	if err := b.reconcile(b.direct(nodeimage.Options{}), "1"); err != nil {
		b.Fatal(err)
	}
	b.eventually("1", lists(""))
}

//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// around calls a function in the place of every write of a client, with the name of the object.
func around(c client.WithWatch, do func(object string, write func() error) error) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return do(o.GetName(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return do(o.GetName(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return do(o.GetName(), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// writes lets a test come between the writes of a reconciler.
type writes struct {
	mu sync.Mutex
	n  int
	// before is called with the number of each write; an error is what the reconciler gets in its place.
	before func(n int) error
}

func (w *writes) do(write func() error) error {
	w.mu.Lock()
	w.n++
	n := w.n
	w.mu.Unlock()
	if err := w.before(n); err != nil {
		return err
	}
	return write()
}

func (w *writes) client(c client.WithWatch) client.Client {
	return around(c, func(_ string, write func() error) error { return w.do(write) })
}

// wholesome is a request that ended well, about a pod that is back in traffic with one container restarted, once.
func (b *bench) wholesome(r *request, pod *corev1.Pod) {
	b.Helper()
	b.becomes(r, ended(""))
	b.podReady(pod)
	if c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType); c.Message != "[]" {
		b.Errorf("%s: afterwards %+v", pod.Name, c)
	}
	if at := b.node.kills(r, "app"); len(at) != 1 || pod.Status.ContainerStatuses[0].RestartCount != 1 {
		b.Errorf("%s: stopped at %v, containers %+v", pod.Name, at, pod.Status.ContainerStatuses)
	}
}

// The reconciler dies before one of its writes, or in it, and another one, which remembers nothing, goes on.
func TestRestartOfReconciler(t *testing.T) {
	const most = 6
	for at := 1; at <= most; at++ {
		t.Run(fmt.Sprintf("at write %d", at), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			died := make(chan struct{})
			w := &writes{before: func(n int) error {
				switch {
				case n == at:
					close(died)
				case n > at:
					return errors.New("it is dead")
				}
				return nil
			}}
			stop := b.reconcile(ahead(0), w.client)
			b.node.serve()
			pod := b.pod("web", gated)
			r := b.ask("again", pod, grace(1))
			b.until(func() error {
				select {
				case <-died:
					return nil
				default:
					return errors.New("it lives")
				}
			})
			stop()
			b.reconcile(ahead(0), plain)
			b.wholesome(r, pod)
		})
	}
}

// A request that is deleted goes in every phase, and leaves the pod in traffic and nothing to be stopped.
func TestDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		why   string
		ask   []func(*request)
		until func(*node, *request) error
	}{
		"new": {"nobody may have seen it", nil, func(*node, *request) error { return nil }},
		"grace": {"the pod is out of traffic", []func(*request){grace(60)}, func(_ *node, r *request) error {
			if graceCondition(r) == nil {
				return errors.New("no grace period")
			}
			return nil
		}},
		"finalizer": {"the pod is about to leave traffic", []func(*request){grace(60)}, func(_ *node, r *request) error {
			if !slices.Contains(r.Finalizers, finalizer) {
				return errors.New("no finalizer")
			}
			return nil
		}},
		"stopping": {"the daemon is to give it up", []func(*request){grace(0)}, func(n *node, _ *request) error {
			if n.began() == 0 {
				return errors.New("nothing is stopped")
			}
			return nil
		}},
		"ended": {"it is to go before its time", []func(*request){ttl(3600)}, func(n *node, r *request) error {
			n.hold(false)
			return ended("")(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := start(t)
			n.hold(true)
			pod := b.pod("web", gated)
			r := b.ask("again", pod, c.ask...)
			b.becomes(r, func(r *request) error { return c.until(n, r) })
			if err := b.client.Delete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			b.goes(r)
			b.podReady(pod)
			b.until(func() error {
				if begun := n.began(); begun > 0 {
					return fmt.Errorf("%s: %d kills are under way", c.why, begun)
				}
				return nil
			})
			want := int32(0)
			if name == "ended" {
				want = 1
			}
			if n := pod.Status.ContainerStatuses[0].RestartCount; n != want {
				t.Errorf("%d restarts, want %d", n, want)
			}
		})
	}
}

// late is a cache of pods that shows what it has seen first, or nothing, for as long as the test lasts.
type late struct {
	mu   sync.Mutex
	seen *corev1.Pod
	// none has no pods at all.
	none bool
}

func (l *late) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			pod, ok := o.(*corev1.Pod)
			if !ok {
				return c.Get(ctx, key, o, opts...)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.none {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
			}
			if l.seen == nil {
				seen := &corev1.Pod{}
				if err := c.Get(ctx, key, seen, opts...); err != nil {
					return err
				}
				l.seen = seen
			}
			l.seen.DeepCopyInto(pod)
			return nil
		},
	})
}

// The cache of pods lags behind that of requests. A pod that was taken out of traffic is put back all the same.
func TestLatePodIsPutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reconcile(ahead(0), (&late{}).client)
	pod := b.pod("web", gated)
	b.still()
	r := b.ask("again", pod, grace(60))
	b.phase(r, recreating)
	b.becomes(r, func(r *request) error {
		if graceCondition(r) == nil {
			return errors.New("no grace period")
		}
		return nil
	})
	if err := b.look(pod); err != nil || isTrue(pod, kruise.KruisePodReadyConditionType) {
		t.Fatalf("%v, the pod is in traffic", err)
	}
	if err := b.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.goes(r)
	b.podReady(pod)
}

// A pod that the cache does not show yet has not gone.
func TestLatePodHasNotGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reconcile(ahead(0), (&late{none: true}).client)
	b.node.serve()
	r := b.ask("again", b.pod("web"))
	b.becomes(r, ended(""))
	if at := b.node.kills(r, "app"); len(at) != 1 {
		t.Errorf("stopped at %v", at)
	}
}

// The pod changes between the look and the write: what another client wrote stays.
func TestPodChangesMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pod := b.pod("web", gated)
	const other = `{"userAgent":"Lifecycle","key":"hook"}`
	w := &writes{before: func(n int) error {
		if n == 2 { // after the finalizer
			b.status(pod, func(pod *corev1.Pod) {
				c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
				c.Status, c.Message = corev1.ConditionFalse, "["+other+"]"
			})
		}
		return nil
	}}
	b.reconcile(ahead(0), w.client)
	r := b.ask("again", pod, grace(60))
	b.phase(r, v1beta1.ContainerRecreateRequestRecreating)
	b.becomes(r, func(r *request) error {
		if graceCondition(r) == nil {
			return errors.New("no grace period")
		}
		return nil
	})
	if err := b.look(pod); err != nil {
		t.Fatal(err)
	}
	if c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType); c.Message != "["+entry(r)+","+other+"]" {
		t.Errorf("condition %+v", c)
	}
}

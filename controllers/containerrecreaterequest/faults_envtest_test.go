//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// Whatever is lost, on the way to the API server or back, no request is lost, and nothing is done twice.
func TestFaults(t *testing.T) {
	b := newBench(t)
	const runs = 12
	f := b.Faults(0)
	live, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	b.reconcile(containerrecreaterequest.Options{Live: podbench.Reads(live, f.Do)},
		func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	b.node.serve()
	pods, all := make([]*corev1.Pod, runs), make([]*request, runs)
	for i := range all {
		pods[i] = b.pod(fmt.Sprintf("web-%d", i), gated)
		all[i] = b.ask(fmt.Sprintf("again-%d", i), pods[i], grace(0), func(r *request) {
			if i%2 == 0 {
				ttl(1)(r)
			}
		})
	}
	for i, r := range all {
		if i%2 > 0 {
			b.wholesome(r, pods[i])
			continue
		}
		b.goes(r)
		b.podReady(pods[i])
		if at := b.node.kills(r, "app"); len(at) != 1 {
			t.Errorf("%s: stopped at %v", r.Name, at)
		}
	}
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
	for _, at := range []int64{2, 5} {
		t.Run(fmt.Sprintf("at write %d", at), func(t *testing.T) {
			b := newBench(t)
			died, n := make(chan struct{}), atomic.Int64{}
			stop := b.reconcile(ahead(0), func(c client.WithWatch) client.Client {
				return podbench.Writes(c, func(_ string, write func() error) error {
					switch i := n.Add(1); {
					case i == at:
						close(died)
					case i > at:
						return podbench.ErrFault
					}
					return write()
				})
			})
			b.node.serve()
			pod := b.pod("web", gated)
			r := b.ask("again", pod, grace(1))
			<-died
			stop()
			b.reconcile(ahead(0), plain)
			b.wholesome(r, pod)
		})
	}
}

// A request that is deleted goes, and leaves the pod in traffic and nothing to be stopped.
func TestDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		seconds int64
		until   func(*node, *request) error
	}{
		"the pod is out of traffic": {60, func(_ *node, r *request) error { return inGrace(r) }},
		"the daemon gives it up": {0, func(n *node, _ *request) error {
			if n.began() == 0 {
				return errors.New("nothing is stopped")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := start(t)
			n.hold(true)
			pod := b.pod("web", gated)
			r := b.ask("again", pod, grace(c.seconds))
			b.becomes(r, func(r *request) error { return c.until(n, r) })
			if err := b.Client.Delete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			b.goes(r)
			b.podReady(pod)
			b.Until(func() error {
				if begun := n.began(); begun > 0 {
					return fmt.Errorf("%d kills are under way", begun)
				}
				return nil
			})
			if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
				t.Errorf("%d restarts", n)
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
	b := newBench(t)
	b.reconcile(ahead(0), (&late{}).client)
	pod := b.pod("web", gated)
	b.Still()
	r := b.ask("again", pod, grace(60))
	b.phase(r, recreating)
	b.becomes(r, inGrace)
	if err := b.Look(pod); err != nil || isTrue(pod, kruise.KruisePodReadyConditionType) {
		t.Fatalf("%v, the pod is in traffic", err)
	}
	if err := b.Client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.goes(r)
	b.podReady(pod)
}

// A pod that the cache does not show yet has not gone.
func TestLatePodHasNotGone(t *testing.T) {
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
	b := newBench(t)
	pod := b.pod("web", gated)
	const other = `{"userAgent":"Lifecycle","key":"hook"}`
	change := sync.OnceFunc(func() {
		b.Status(pod, func(pod *corev1.Pod) {
			c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
			c.Status, c.Message = corev1.ConditionFalse, "["+other+"]"
		})
	})
	b.reconcile(ahead(0), func(c client.WithWatch) client.Client {
		return podbench.Writes(c, func(what string, write func() error) error {
			if what == "status/web" { // after the finalizer
				change()
			}
			return write()
		})
	})
	r := b.ask("again", pod, grace(60))
	b.phase(r, v1beta1.ContainerRecreateRequestRecreating)
	b.becomes(r, inGrace)
	if err := b.Look(pod); err != nil {
		t.Fatal(err)
	}
	if c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType); c.Message != "["+entry(r)+","+other+"]" {
		t.Errorf("condition %+v", c)
	}
}

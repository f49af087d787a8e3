//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/test/requests"
)

// still waits until nothing is asked of the API server any more.
func (b *bench) still() {
	b.Helper()
	for quiet := 0; quiet < 5; quiet++ {
		before := b.requests.Sent()
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // that nothing happens is the thing to see
		if b.requests.Sent() != before {
			quiet = 0
		}
	}
}

// barrier returns when the reconciler has come round to a request that was made now: one that is not completed,
// which ends at once. What was due before has been looked at.
func (b *bench) barrier() {
	b.Helper()
	r := b.asked("barrier", &corev1.Pod{})
	r.GenerateName, r.Name = "barrier-", ""
	r.Spec.PodName = "none"
	if err := b.client.Create(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	b.becomes(r, ended("pod has gone"))
	b.still()
}

// finalizers replaces those of a request that may be gone.
func (b *bench) finalizers(r *request, all ...string) {
	b.Helper()
	for {
		fresh := r.DeepCopy()
		err := b.look(fresh)
		if err == nil {
			fresh.Finalizers = all
			err = b.client.Update(b.Context(), fresh)
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			b.Fatal(err)
		}
		return
	}
}

// A request costs the reconciler what the plans need, and nothing once it is over, whatever its pod does.
func TestWrites(t *testing.T) {
	const (
		main, status = "PATCH containerrecreaterequests/again 200", "PATCH containerrecreaterequests/again/status 200"
		pod          = "PATCH pods/web/status 200"
	)
	for name, c := range map[string]struct {
		why  string
		ask  []func(*request)
		want []string
	}{
		"plain": {"a snapshot, the label", nil, []string{status, main}},
		"ttl": {
			"and the deletion", []func(*request){ttl(0)}, []string{status, main, "DELETE containerrecreaterequests/again 200"},
		},
		"grace": {
			"the finalizer, the pod, the condition; a snapshot; the pod as it is, the pod again, finalizer and label at once",
			[]func(*request){grace(0)},
			[]string{main, pod, status, status, "GET pods/web 200", pod, main},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := start(t)
			web := b.pod("web", gated)
			b.still()
			b.requests.Take()
			r := b.ask("again", web, c.ask...)
			if name == "ttl" {
				b.goes(r)
			} else {
				b.becomes(r, ended(""))
			}
			b.still()
			all := b.requests.Take()
			made := requests.Without(all, " 409")
			if diff := cmp.Diff(c.want, made); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			t.Logf("%d requests, %d of them conflicts", len(all), len(all)-len(made))

			b.node.crash(web, "app")
			b.restarted(web, 0, 2)
			b.status(web, func(pod *corev1.Pod) { pod.Status.Message = "something" })
			b.still()
			if all := b.requests.Take(); len(all) > 0 {
				t.Errorf("it is over, and the pod changes: %v", all)
			}
		})
	}
}

// restarted waits until a pod tells that one of its containers has restarted so often.
func (b *bench) restarted(pod *corev1.Pod, container int, times int32) {
	b.Helper()
	b.until(func() error {
		if err := b.look(pod); err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses[container]; s.RestartCount != times || !s.Ready {
			return fmt.Errorf("%s: container %+v", pod.Name, s)
		}
		return nil
	})
}

// A request that waits for its daemon is looked at, and not written.
func TestWaitingIsQuiet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reconcile(ahead(0), plain)
	pod := b.pod("web")
	r := b.ask("again", pod)
	b.phase(r, recreating)
	b.ask("next", pod)
	b.still()
	b.requests.Take()
	b.node.crash(pod, "log")
	b.restarted(pod, 1, 1)
	b.status(pod, func(pod *corev1.Pod) { pod.Status.Message = "something" })
	b.still()
	if all := b.requests.Take(); len(all) > 0 {
		t.Errorf("asked %v", all)
	}
}

// looks counts how often a reconciler reads pods, by their names: once in each pass over a request that is not over.
type looks struct {
	mu   sync.Mutex
	read map[string]int
}

func (l *looks) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			l.mu.Lock()
			l.read[key.Name]++
			l.mu.Unlock()
			return c.Get(ctx, key, o, opts...)
		},
	})
}

func (l *looks) at(pod string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read[pod]
}

// An event of a pod has the requests of that pod looked at, and no others.
func TestWhoIsLookedAt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := &looks{read: map[string]int{}}
	b.reconcile(ahead(-time.Hour), l.client) // so that no time runs out
	web, other, last := b.pod("web"), b.pod("other"), b.pod("last")
	b.ask("again", web)
	b.ask("elsewhere", other)
	b.ask("mark", last)
	marks := int32(0)
	// mark returns when the event of a pod has been minded that came after all others.
	mark := func() {
		t.Helper()
		before := l.at("last")
		b.node.crash(last, "app")
		marks++
		b.restarted(last, 0, marks)
		b.until(func() error {
			if l.at("last") == before {
				return errors.New("nobody has looked at the last pod")
			}
			return nil
		})
	}
	mark()
	b.still()
	was, elsewhere := l.at("web"), l.at("other")
	if was == 0 || elsewhere == 0 {
		t.Fatalf("web was looked at %d times, other %d times", was, elsewhere)
	}
	b.node.crash(web, "log")
	b.until(func() error {
		if l.at("web") == was {
			return errors.New("nobody has looked at web")
		}
		return nil
	})
	mark()
	if now := l.at("other"); now != elsewhere {
		t.Errorf("other was looked at %d times for what happened elsewhere", now-elsewhere)
	}
}

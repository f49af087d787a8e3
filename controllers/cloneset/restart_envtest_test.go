//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// after runs something once, before a write of the reconciler, when some have been made.
type after struct {
	mu     sync.Mutex
	writes int
	do     func()
}

func (a *after) count() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writes--; a.writes == 0 {
		a.do()
	}
}

func (a *after) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			a.count()
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			a.count()
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

// stale shows the pods and claims of the moment when it was made, until it is told to catch up.
type stale struct {
	mu     sync.Mutex
	frozen bool
	pods   corev1.PodList
	claims corev1.PersistentVolumeClaimList
}

func (s *stale) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = false
}

func (s *stale) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch list := into.(type) {
			case *corev1.PodList:
				if s.frozen {
					s.pods.DeepCopyInto(list)
					return nil
				}
			case *corev1.PersistentVolumeClaimList:
				if s.frozen {
					s.claims.DeepCopyInto(list)
					return nil
				}
			}
			return c.List(ctx, into, opts...)
		},
	})
}

// The controller dies in the middle of creating pods, and another one, which remembers nothing, goes on: with a cache that knows
// all, or one that has seen nothing yet. No pod is made twice.
func TestRestartWhileCreating(t *testing.T) {
	for name, frozen := range map[string]bool{"fresh cache": false, "stale cache": true} {
		for _, writes := range []int{2, 3, 5, 8} {
			t.Run(fmt.Sprintf("%s/%d writes", name, writes), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				died := make(chan struct{})
				first := &after{writes: writes, do: sync.OnceFunc(func() { close(died) })}
				stop := b.reconcile(cloneset.Options{}, first.client)
				set := b.create("web", 6, withClaims)
				<-died
				stop()
				s := &stale{frozen: frozen}
				b.reconcile(cloneset.Options{}, s.client)
				b.until(func() error { // by what it has seen, all are there, or it waits
					if n := len(b.pods(set)); n < 6 {
						return fmt.Errorf("%d pods", n)
					}
					return nil
				})
				s.catchUp()
				b.eventually(set, settled)
				b.still()
				// The answer to what the first one made last may have died with it, so that not all creations are known. One too
				// many would have been deleted.
				asked := b.requests.take()
				made, deleted := about(asked, "POST", "/pods 201"), about(asked, "DELETE", "/pods/")
				if len(made) > 6 || len(deleted) > 0 || len(b.claims()) != 6 {
					t.Errorf("%d pods were made and %d deleted, with %d claims; want 6 of each", len(made), len(deleted), len(b.claims()))
				}
			})
		}
	}
}

// As above, in the middle of an update in place: no pod restarts twice, and none is lost.
func TestRestartWhileUpdating(t *testing.T) {
	for _, writes := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprintf("%d writes", writes), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			died := make(chan struct{})
			stop := b.reconcile(cloneset.Options{}, func(c client.WithWatch) client.Client { return c })
			set := b.create("web", 5, inPlace)
			b.eventually(set, settled)
			before := uids(b.pods(set))
			stop()
			second := &after{writes: writes, do: sync.OnceFunc(func() { close(died) })}
			stop = b.reconcile(cloneset.Options{}, second.client)
			b.change(set, image("web:2"))
			<-died
			stop()
			b.reconcile(cloneset.Options{}, func(c client.WithWatch) client.Client { return c })
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if n := running(pods, "web:2"); n != 5 {
					return fmt.Errorf("%d pods run the new image", n)
				}
				return settled(set, pods)
			})
			for _, pod := range b.pods(set) {
				if n := pod.Status.ContainerStatuses[0].RestartCount; n != 1 {
					t.Errorf("%s restarted %d times", pod.Name, n)
				}
			}
			if now := uids(b.pods(set)); fmt.Sprint(now) != fmt.Sprint(before) {
				t.Errorf("pods %v became %v", before, now)
			}
		})
	}
}

// Two managers of one process each have a namespace, and sets of the same name in it.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	plain := func(c client.WithWatch) client.Client { return c }
	one, other := newBench(t), newBench(t)
	stop := one.reconcile(cloneset.Options{}, plain)
	other.reconcile(cloneset.Options{}, plain)
	a, z := one.create("web", 3, inPlace), other.create("web", 2, inPlace)
	one.eventually(a, settled)
	other.eventually(z, settled)
	kept := uids(other.pods(z))
	other.still()
	other.requests.take()
	one.change(a, image("web:2"))
	one.eventually(a, all(settled, images(map[string]int{"web:2": 3})))
	stop()
	if asked := other.requests.take(); len(asked) > 0 {
		t.Errorf("the other one asked %v", asked)
	}
	other.change(z, image("web:3"))
	other.eventually(z, all(settled, images(map[string]int{"web:3": 2})))
	if now := uids(other.pods(z)); fmt.Sprint(now) != fmt.Sprint(kept) {
		t.Errorf("pods %v became %v", kept, now)
	}
	one.stays(a, images(map[string]int{"web:2": 3}))
}

//go:build envtest

package cloneset_test

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

var (
	runs = flag.Int("runs", 20, "how many sets are reconciled with faults")
	seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")
)

// after returns a channel that is closed before a write of the reconciler, when some were sent.
func after(writes int) (<-chan struct{}, func(client.WithWatch) client.WithWatch) {
	reached := make(chan struct{})
	var sent atomic.Int64
	return reached, func(c client.WithWatch) client.WithWatch {
		return podbench.Writes(c, func(_ string, write func() error) error {
			if sent.Add(1) == int64(writes) {
				close(reached)
			}
			return write()
		})
	}
}

// Whichever writes fail, before or after the API server applied them, no pod or claim is lost, created twice or
// restarted twice.
func TestFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	faults := b.kit.Faults(*seed)
	b.reconcile(cloneset.Options{}, func(c client.WithWatch) client.WithWatch { return podbench.Writes(c, faults.Do) })
	sets := make([]*v1beta1.CloneSet, *runs)
	for i := range sets {
		sets[i] = b.create(fmt.Sprintf("web-%d", i), 3, func(s *v1beta1.CloneSet) {
			inPlace(s)
			withClaims(s)
		})
	}
	first := map[string]map[string]bool{}
	for _, set := range sets {
		b.eventually(set, settled)
		first[set.Name] = uids(b.pods(set))
		b.change(set, image("web:2"))
	}
	for _, set := range sets {
		b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
			for i := range pods {
				if s := pods[i].Status.ContainerStatuses[0]; s.Image != "web:2" || s.RestartCount != 1 {
					return fmt.Errorf("%s runs %s after %d restarts", pods[i].Name, s.Image, s.RestartCount)
				}
			}
			return settled(set, pods)
		})
		if after := uids(b.pods(set)); fmt.Sprint(after) != fmt.Sprint(first[set.Name]) {
			t.Errorf("%s: pods %v became %v", set.Name, first[set.Name], after)
		}
	}
	if got, want := len(b.claims()), 3**runs; got != want {
		t.Errorf("%d claims, want %d", got, want)
	}
	if created := len(requests.About(b.asked(), "POST pods 201")); created != 3**runs {
		t.Errorf("%d pods were created, want %d", created, 3**runs)
	}
}

// The manager stops while it creates pods, and another one without a ledger continues, with a cache that is current or
// empty. No pod is created twice. TestStopAtEachWrite stops it at each write.
func TestRestartWhileCreating(t *testing.T) {
	for name, frozen := range map[string]bool{"fresh cache": false, "stale cache": true} {
		for _, writes := range []int{3, 8} {
			t.Run(fmt.Sprintf("%s/%d writes", name, writes), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				reached, first := after(writes)
				stop := b.reconcile(cloneset.Options{}, first)
				set := b.create("web", 6, withClaims)
				<-reached
				stop()
				s := &stale{frozen: frozen}
				b.reconcile(cloneset.Options{}, s.client)
				b.kit.Until(func() error { // the pods that the cache lacks are read past it
					if n := len(b.pods(set)); n < 6 {
						return fmt.Errorf("%d pods", n)
					}
					return nil
				})
				s.catchUp()
				b.eventually(set, settled)
				b.still()
				// The answer to the last creation of the first manager may be lost, and not be counted. A surplus pod would be
				// deleted.
				asked := b.asked()
				created, deleted := requests.About(asked, "POST pods 201"), requests.About(asked, "DELETE pods/")
				if len(created) > 6 || len(deleted) > 0 || len(b.claims()) != 6 {
					t.Errorf("%d pods were created and %d deleted, with %d claims; want 6, none and 6",
						len(created), len(deleted), len(b.claims()))
				}
			})
		}
	}
}

// The manager stops while it updates pods in place, and another one continues. No pod restarts twice, and none is lost.
func TestRestartWhileUpdating(t *testing.T) {
	for _, writes := range []int{2, 8} {
		t.Run(fmt.Sprintf("%d writes", writes), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			stop := b.reconcile(cloneset.Options{}, plain)
			set := b.create("web", 5, inPlace)
			b.eventually(set, settled)
			before := uids(b.pods(set))
			stop()
			reached, second := after(writes)
			stop = b.reconcile(cloneset.Options{}, second)
			b.change(set, image("web:2"))
			<-reached
			stop()
			b.reconcile(cloneset.Options{}, plain)
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

// Two managers of one process reconcile sets of the same name in two namespaces.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	one, other := newBench(t), newBench(t)
	stop := one.reconcile(cloneset.Options{}, plain)
	other.reconcile(cloneset.Options{}, plain)
	a, z := one.create("web", 3, inPlace), other.create("web", 2, inPlace)
	one.eventually(a, settled)
	other.eventually(z, settled)
	kept := uids(other.pods(z))
	other.still()
	other.asked()
	one.change(a, image("web:2"))
	one.eventually(a, all(settled, images(map[string]int{"web:2": 3})))
	stop()
	if asked := other.asked(); len(asked) > 0 {
		t.Errorf("the other manager sent %v", asked)
	}
	other.change(z, image("web:3"))
	other.eventually(z, all(settled, images(map[string]int{"web:3": 2})))
	if now := uids(other.pods(z)); fmt.Sprint(now) != fmt.Sprint(kept) {
		t.Errorf("pods %v became %v", kept, now)
	}
	one.stays(a, images(map[string]int{"web:2": 3}))
}

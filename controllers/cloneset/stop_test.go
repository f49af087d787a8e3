package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// stale is a cache that lists the pods and claims of an earlier time until it catches up.
type stale struct {
	mu     sync.Mutex
	frozen bool
	// onlyPods means that the claims are current.
	onlyPods bool
	pods     corev1.PodList
	claims   corev1.PersistentVolumeClaimList
}

func (s *stale) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = false
}

func (s *stale) client(c client.WithWatch) client.WithWatch {
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
				if s.frozen && !s.onlyPods {
					s.claims.DeepCopyInto(list)
					return nil
				}
			}
			return c.List(ctx, into, opts...)
		},
	})
}

// stop is a manager that stops at one of its writes: before the API server applies it, or after.
type stop struct {
	at    int
	after bool

	mu   sync.Mutex
	sent int
}

var errStopped = errors.New("the manager has stopped")

func (s *stop) client(c client.WithWatch) client.WithWatch { return podbench.Writes(c, s.write) }

func (s *stop) write(_ string, write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent++; s.sent > s.at || s.sent == s.at && !s.after {
		return errStopped
	}
	return write()
}

// stopped returns an error for a manager that still runs.
func (s *stop) stopped() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent < s.at {
		return fmt.Errorf("%d writes are sent, it stops at %d", s.sent, s.at)
	}
	return nil
}

// The manager stops at any of its writes, and another one without a ledger continues, with a cache that is current or
// from before. No pod or claim is created twice, and no pod restarts twice.
func TestStopAtEachWrite(t *testing.T) {
	for name, c := range map[string]struct {
		why           string
		after, frozen bool
	}{
		"before":              {why: "the write is never applied"},
		"after":               {why: "the answer is lost", after: true},
		"before, stale cache": {why: "the next manager sees no write of the first", frozen: true},
		"after, stale cache": {
			why: "the next manager sees no write of the first, and the answer of the last is lost", after: true, frozen: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, act := range []func(*model, *stop, bool) bool{stopWhileCreating, stopWhileUpdating} {
				at := 1
				for act(newModel(t, cloneset.Options{}), &stop{at: at, after: c.after}, c.frozen) {
					at++
				}
				if at < 8 {
					t.Errorf("%s: only %d writes", c.why, at-1)
				}
			}
		})
	}
}

// stopWhileCreating reports whether the manager had that many writes to send.
func stopWhileCreating(m *model, first *stop, frozen bool) bool {
	m.Helper()
	m.start(cloneset.Options{}, first.client)
	set := m.create("web", 2, withClaims)
	if err := m.Turns(first.stopped); err != nil {
		return false
	}
	cache := &stale{frozen: frozen}
	m.start(cloneset.Options{}, cache.client)
	m.Still()
	cache.catchUp()
	m.eventually(set, settled)
	asked := m.Server.Requests()
	created, deleted := requests.About(asked, "POST pods/", " 201"), requests.About(asked, "DELETE pods/")
	if len(created) != 2 || len(deleted) > 0 || len(m.claims()) != 2 {
		m.Errorf("stop at write %d: %d pods were created and %d deleted, with %d claims; want 2, none and 2",
			first.at, len(created), len(deleted), len(m.claims()))
	}
	return true
}

func stopWhileUpdating(m *model, second *stop, frozen bool) bool {
	m.Helper()
	set := m.create("web", 2, inPlace)
	m.eventually(set, settled)
	cache := &stale{frozen: frozen, pods: corev1.PodList{Items: m.pods(set)}}
	before := uids(m.pods(set))
	m.start(cloneset.Options{}, second.client)
	m.change(set, image("web:2"))
	if err := m.Turns(second.stopped); err != nil {
		return false
	}
	m.start(cloneset.Options{}, cache.client)
	m.Still()
	cache.catchUp()
	m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if n := running(pods, "web:2"); n != 2 {
			return fmt.Errorf("%d pods run the new image", n)
		}
		return settled(set, pods)
	})
	for _, pod := range m.pods(set) {
		if n := pod.Status.ContainerStatuses[0].RestartCount; n != 1 {
			m.Errorf("stop at write %d: %s restarted %d times", second.at, pod.Name, n)
		}
	}
	if now := uids(m.pods(set)); fmt.Sprint(now) != fmt.Sprint(before) {
		m.Errorf("stop at write %d: pods %v became %v", second.at, before, now)
	}
	return true
}

//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/containerrestart"
)

// Requests of one pod run one after the other, and none is left over.
func TestQueue(t *testing.T) {
	b, n := start(t)
	pod := b.pod("web")
	n.hold(true)
	first := b.ask("first", pod)
	b.until(func() error {
		if n.began() == 0 {
			return errors.New("no container is stopped")
		}
		return nil
	})
	second, third := b.ask("second", pod, force), b.ask("third", pod, force, both)
	for _, r := range []*request{second, third} {
		b.becomes(r, func(r *request) error {
			if r.Status.Phase != pending {
				return errors.New("does not wait")
			}
			return nil
		})
	}
	n.hold(false)
	for _, r := range []*request{first, second, third} {
		b.becomes(r, ended(""))
		if at := n.kills(r, "app"); len(at) != 1 {
			t.Errorf("%s: app was stopped at %v", r.Name, at)
		}
	}
	if err := b.look(pod); err != nil {
		t.Fatal(err)
	}
	if s := pod.Status.ContainerStatuses; s[0].RestartCount != 3 || s[1].RestartCount != 1 {
		t.Errorf("containers are %+v", s)
	}
}

// inTurn is a request that is known to be the first.
func inTurn(r *request) error {
	if c := condition(r, containerrestart.InTurn); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("is not known to be the first: %+v", c)
	}
	return nil
}

// Whatever becomes of the first request, the one that waits for it is looked at, although nothing else happens: so it
// does not stay Pending where no daemon is left.
func TestNextIsLookedAt(t *testing.T) {
	for name, over := range map[string]func(b *bench, first *request){
		"ended": func(b *bench, first *request) { b.phase(first, completed) },
		"deleted": func(b *bench, first *request) {
			if err := b.client.Delete(b.Context(), first); err != nil {
				b.Fatal(err)
			}
		},
		"deleted, and held by somebody": func(b *bench, first *request) {
			b.finalizers(first, "test.kruisekit.dev/held")
			if err := b.client.Delete(b.Context(), first); err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			pod := b.pod("web")
			first, second := b.ask("first", pod), b.ask("second", pod)
			b.phase(first, recreating)
			b.phase(second, pending)
			stop := b.reconcile(ahead(time.Hour), plain)
			b.barrier()
			if err := b.look(second); err != nil || len(second.Status.Conditions) > 0 {
				t.Fatalf("%v, conditions %+v: it is not the first", err, second.Status.Conditions)
			}
			over(b, first)
			b.becomes(second, inTurn)
			b.finalizers(first)
			stop()
			// It gets no answer either.
			b.reconcile(ahead(2*time.Hour), plain)
			b.becomes(second, ended("daemon has not responded for a long time"))
		})
	}
}

// A request for an earlier pod of the name is over before those for the pod of now.
func TestEarlierPod(t *testing.T) {
	b, n := start(t)
	pod := b.pod("web")
	other := pod.DeepCopy()
	other.UID = "an-earlier-one"
	old := b.ask("old", other)
	r := b.ask("again", pod)
	b.becomes(old, ended("pod has gone"))
	b.becomes(r, ended(""))
	if at := n.kills(old, "app"); len(at) > 0 {
		t.Errorf("a container was stopped for the earlier pod at %v", at)
	}
}

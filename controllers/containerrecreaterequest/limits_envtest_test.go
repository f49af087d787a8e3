//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

// A request that no daemon takes up ends after a minute, by the requeue alone: nothing else happens.
func TestDaemonAbsent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reconcile(ahead(56*time.Second), plain)
	r := b.ask("again", b.pod("web"))
	b.becomes(r, ended("daemon has not responded for a long time"))
	if took := r.Status.CompletionTime.Sub(r.CreationTimestamp.Time); took < time.Minute {
		t.Errorf("it ended after %s", took)
	}
	b.until(func() error {
		if texts := b.events(r, containerrestart.NoteEnded); len(texts) != 1 {
			return fmt.Errorf("events %q", texts)
		}
		return nil
	})
}

// The deadline ends a request while a container is being stopped, at the time and not before. That container restarts
// nevertheless, and the request tells; the next one is never touched.
func TestDeadline(t *testing.T) {
	const message = "recreating has exceeded the activeDeadlineSeconds"
	b, n := start(t)
	n.hold(true)
	pod := b.pod("web")
	r := b.ask("again", pod, both, deadline(5))
	b.becomes(r, ended(message))
	if took := r.Status.CompletionTime.Sub(r.CreationTimestamp.Time); took < 5*time.Second {
		t.Errorf("it ended after %s", took)
	}
	if diff := cmp.Diff(states("app", pending, "log", pending), r.Status.ContainerRecreateStates); diff != "" ||
		n.began() != 1 {
		t.Errorf("%d kills are under way, states (-want +got):\n%s", n.began(), diff)
	}
	n.hold(false)
	b.becomes(r, func(r *request) error {
		if diff := cmp.Diff(states("app", recreating, "log", pending), r.Status.ContainerRecreateStates); diff != "" {
			return fmt.Errorf("states (-want +got):\n%s", diff)
		}
		return ended(message)(r)
	})
	b.until(func() error {
		if err := b.look(pod); err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses; s[0].RestartCount != 1 || s[1].RestartCount != 0 {
			return fmt.Errorf("containers are %+v", s)
		}
		return nil
	})
}

// The deadline also ends a request that no daemon works on.
func TestDeadlineOfAnyPhase(t *testing.T) {
	for _, p := range []v1beta1.ContainerRecreateRequestPhase{"", pending, recreating} {
		t.Run("phase "+string(p), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			r := b.ask("again", b.pod("web"), deadline(3))
			if p != "" {
				b.phase(r, p)
			}
			b.reconcile(ahead(0), plain)
			b.becomes(r, ended("recreating has exceeded the activeDeadlineSeconds"))
		})
	}
}

// The pod of a request goes, or another one takes its name.
func TestPodGone(t *testing.T) {
	for _, p := range []v1beta1.ContainerRecreateRequestPhase{"", pending, recreating} {
		t.Run("deleted, "+string(p), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.reconcile(ahead(0), plain)
			pod := b.pod("web", gated)
			r := b.ask("again", pod, grace(60))
			if p != "" {
				b.phase(r, p)
			}
			if p == recreating {
				b.becomes(r, func(r *request) error {
					if graceCondition(r) == nil {
						return errors.New("is not in its grace period")
					}
					return nil
				})
			}
			if err := b.client.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			b.becomes(r, ended("pod has gone"))
		})
	}
	t.Run("followed by another", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		pod := b.pod("web")
		r := b.ask("again", pod)
		if err := b.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		b.goes(pod)
		b.pod("web")
		b.reconcile(ahead(0), plain)
		b.becomes(r, ended("pod has gone"))
	})
	t.Run("followed by another at once", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.reconcile(ahead(0), plain)
		pod := b.pod("web")
		r := b.ask("again", pod)
		if err := b.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		b.goes(pod)
		next := b.pod("web")
		b.becomes(r, ended("pod has gone"))
		if err := b.look(next); err != nil || next.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("%v, containers %+v", err, next.Status.ContainerStatuses)
		}
	})
}

//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A container restarts once; the request says so, is kept for as long as it asked, and goes.
func TestRestart(t *testing.T) {
	b, n := start(t)
	pod := b.pod("web")
	old := pod.Status.ContainerStatuses[0].ContainerID
	r := b.ask("again", pod, ttl(1), func(r *request) { r.Spec.Strategy.MinStartedSeconds = 1 })
	b.becomes(r, ended(""))
	if err := b.Look(pod); err != nil {
		t.Fatal(err)
	}
	is := pod.Status.ContainerStatuses[0]
	want := v1beta1.ContainerRecreateRequestStatus{
		Phase: completed, CompletionTime: r.Status.CompletionTime,
		ContainerRecreateStates: []v1beta1.ContainerRecreateRequestContainerRecreateState{
			{Name: "app", Phase: succeeded, IsKilled: true},
		},
		ContainerStatusSnapshot: []v1beta1.ContainerRecreateRequestSyncContainerStatus{
			{Name: "app", Ready: true, RestartCount: 1, ContainerID: is.ContainerID},
		},
	}
	if diff := cmp.Diff(want, r.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if took := r.Status.CompletionTime.Sub(is.State.Running.StartedAt.Time); took < time.Second {
		t.Errorf("it ended %s after the container started", took)
	}
	if is.ContainerID == old || is.RestartCount != 1 || pod.Status.ContainerStatuses[1].RestartCount != 0 {
		t.Errorf("containers are %+v", pod.Status.ContainerStatuses)
	}
	if at := n.kills(r, "app"); len(at) != 1 {
		t.Errorf("stopped at %v", at)
	}
	if len(r.Annotations) > 0 {
		t.Errorf("annotations %v", r.Annotations)
	}
	b.goes(r)
	if kept := time.Since(r.Status.CompletionTime.Time); kept < time.Second {
		t.Errorf("it was kept for %s, want 1s", kept)
	}
}

// entry is that of a request in the message of KruisePodReady.
func entry(r *request) string {
	return fmt.Sprintf(`{"userAgent":"ContainerRecreateRequest","key":"%s/%s"}`, r.Namespace, r.Name)
}

// The pod leaves traffic for the grace period, and is back after the request. Package containerrestart has the rules.
func TestUnreadyGrace(t *testing.T) {
	b, n := start(t)
	pod := b.pod("web", gated)
	n.hold(true)
	r := b.ask("again", pod, grace(1))
	b.Until(func() error {
		if n.began() == 0 {
			return errors.New("no container is stopped")
		}
		return b.Look(pod)
	})
	if err := b.Look(r); err != nil {
		t.Fatal(err)
	}
	since := graceCondition(r)
	if since == nil || since.Status != metav1.ConditionTrue || !slices.Contains(r.Finalizers, finalizer) {
		t.Fatalf("grace %+v, finalizers %v", since, r.Finalizers)
	}
	held := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
	if held.Status != corev1.ConditionFalse || held.Message != "["+entry(r)+"]" || isTrue(pod, corev1.PodReady) {
		t.Errorf("conditions %+v", pod.Status.Conditions)
	}
	n.hold(false)
	b.wholesome(r, pod)
	if at := n.kills(r, "app"); len(at) != 1 || at[0].Sub(since.LastTransitionTime.Time) < time.Second {
		t.Errorf("stopped at %v, the pod left traffic at %s", at, since.LastTransitionTime)
	}
}

// A request that no daemon takes up ends after a minute, by the requeue alone: nothing else happens.
func TestDaemonAbsent(t *testing.T) {
	b := newBench(t)
	b.reconcile(ahead(56*time.Second), plain)
	r := b.ask("again", b.pod("web"))
	b.becomes(r, ended("daemon has not responded for a long time"))
	if took := r.Status.CompletionTime.Sub(r.CreationTimestamp.Time); took < time.Minute {
		t.Errorf("it ended after %s", took)
	}
	b.Until(func() error {
		if texts := b.Events(r, containerrestart.NoteEnded); len(texts) != 1 {
			return fmt.Errorf("events %q", texts)
		}
		return nil
	})
}

// The pod of a request goes, or another one takes its name.
func TestPodGone(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		b := newBench(t)
		b.reconcile(ahead(0), plain)
		pod := b.pod("web", gated)
		r := b.ask("again", pod, grace(60))
		b.phase(r, recreating)
		b.becomes(r, inGrace)
		if err := b.Client.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		b.becomes(r, ended("pod has gone"))
	})
	t.Run("followed by another at once", func(t *testing.T) {
		b := newBench(t)
		b.reconcile(ahead(0), plain)
		pod := b.pod("web")
		r := b.ask("again", pod)
		b.Gone(pod)
		b.goes(pod)
		next := b.pod("web")
		b.becomes(r, ended("pod has gone"))
		if err := b.Look(next); err != nil || next.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("%v, containers %+v", err, next.Status.ContainerStatuses)
		}
	})
}

// inGrace is a request whose pod is out of traffic.
func inGrace(r *request) error {
	if graceCondition(r) == nil {
		return errors.New("no grace period")
	}
	return nil
}

// inTurn is a request that is known to be the first.
func inTurn(r *request) error {
	if !meta.IsStatusConditionTrue(r.Status.Conditions, containerrestart.InTurn) {
		return errors.New("is not known to be the first")
	}
	return nil
}

// Whatever becomes of the first request, the one that waits for it is looked at, although nothing else happens: so it
// does not stay Pending where no daemon is left.
func TestNextIsLookedAt(t *testing.T) {
	for name, over := range map[string]func(b *bench, first *request){
		"ended": func(b *bench, first *request) { b.phase(first, completed) },
		"deleted, and held by a finalizer": func(b *bench, first *request) {
			b.finalizers(first, "test.kruisekit.dev/held")
			if err := b.Client.Delete(b.Context(), first); err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			pod := b.pod("web")
			first, second := b.ask("first", pod), b.ask("second", pod)
			b.phase(first, recreating)
			b.phase(second, pending)
			stop := b.reconcile(ahead(time.Hour), plain)
			b.barrier()
			if err := b.Look(second); err != nil || len(second.Status.Conditions) > 0 {
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

// barrier returns when the reconciler has come round to a request that was made now: one that is not completed,
// which ends at once. What was due before has been looked at.
func (b *bench) barrier() {
	b.Helper()
	r := b.asked("barrier", &corev1.Pod{})
	r.GenerateName, r.Name = "barrier-", ""
	r.Spec.PodName = "none"
	if err := b.Client.Create(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	b.becomes(r, ended("pod has gone"))
	b.Still()
}

// finalizers replaces those of a request that may be gone.
func (b *bench) finalizers(r *request, all ...string) {
	b.Helper()
	for {
		fresh := r.DeepCopy()
		err := b.Look(fresh)
		if err == nil {
			fresh.Finalizers = all
			err = b.Client.Update(b.Context(), fresh)
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
			b.Still()
			b.Asked()
			r := b.ask("again", web, c.ask...)
			if name == "ttl" {
				b.goes(r)
			} else {
				b.becomes(r, ended(""))
			}
			b.Still()
			all := b.Asked()
			made := requests.Without(all, " 409")
			if diff := cmp.Diff(c.want, made); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			t.Logf("%d requests, %d of them conflicts", len(all), len(all)-len(made))

			b.node.crash(web, "app")
			b.restarted(web, 0, 2)
			b.Status(web, func(pod *corev1.Pod) { pod.Status.Message = "something" })
			b.Still()
			if all := b.Asked(); len(all) > 0 {
				t.Errorf("it is over, and the pod changes: %v", all)
			}
		})
	}
}

// restarted waits until a pod tells that one of its containers has restarted so often.
func (b *bench) restarted(pod *corev1.Pod, container int, times int32) {
	b.Helper()
	b.Until(func() error {
		if err := b.Look(pod); err != nil {
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
	b := newBench(t)
	b.reconcile(ahead(0), plain)
	pod := b.pod("web")
	r := b.ask("again", pod)
	b.phase(r, recreating)
	b.ask("next", pod)
	b.Still()
	b.Asked()
	b.node.crash(pod, "log")
	b.restarted(pod, 1, 1)
	b.Status(pod, func(pod *corev1.Pod) { pod.Status.Message = "something" })
	b.Still()
	if all := b.Asked(); len(all) > 0 {
		t.Errorf("asked %v", all)
	}
}

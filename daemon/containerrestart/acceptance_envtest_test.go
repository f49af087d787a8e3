//go:build envtest

package containerrestart_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/daemon/containerrestart"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

func TestOneContainer(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", nil)
	was := b.statusOf(pod, "app")
	b.requests.Take()
	r := b.ask("again", pod, func(r *request) {
		onlyApp(r)
		r.Spec.Strategy.MinStartedSeconds = 1
	})
	b.ends(r, "", up("app"))
	is := b.statusOf(pod, "app")
	if is.RestartCount != 1 || is.ContainerID == was.ContainerID {
		t.Errorf("container %s restarted %d times, is %s", was.ContainerID, is.RestartCount, is.ContainerID)
	}
	if log := b.statusOf(pod, "log"); log.RestartCount != 0 {
		t.Errorf("the other container restarted %d times", log.RestartCount)
	}
	if ran := r.Status.CompletionTime.Sub(is.State.Running.StartedAt.Time); ran < time.Second {
		t.Errorf("it completed when the new container had run for %s", ran)
	}
	// The manager may have written in the same moment, which costs one more each time.
	writes := b.requests.Take()
	if got := requests.Without(writes, " 409"); len(got) != 3 {
		t.Errorf("it costs\n%s", strings.Join(writes, "\n"))
	}
}

func TestTwoContainers(t *testing.T) {
	tests := map[string]struct {
		strategy strategy
		ways     ways
		hook     int64
		// apart is how much later the second one is stopped, at least or at most.
		atLeast, atMost time.Duration
	}{
		"one after the other, and they start together": {ways: ways{"app": {Slow: 4 * time.Second}}, atMost: 3 * time.Second},
		"in order, the first is up before": {
			ways: ways{"app": {Slow: 2 * time.Second}}, strategy: strategy{OrderedRecreate: true}, atLeast: 2 * time.Second,
		},
		"the second waits for the hook of the first": {
			ways: ways{"app": {Stop: takes(2 * time.Second)}}, atLeast: -time.Second, atMost: 5 * time.Second, hook: 2,
		},
		"by force":           {strategy: strategy{ForceRecreate: true}, atMost: 10 * time.Second},
		"by force, in order": {strategy: strategy{ForceRecreate: true, OrderedRecreate: true}, atMost: 10 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t, tt.ways, containerrestart.Options{})
			var change func(*corev1.Pod)
			if tt.hook > 0 {
				change = sleeps(tt.hook)
			}
			pod := b.pod("web", change)
			began := time.Now()
			r := b.ask("again", pod, func(r *request) { r.Spec.Strategy = &tt.strategy })
			b.ends(r, "", up("app"), up("log"))
			first, second := b.stopsOf("app"), b.stopsOf("log")
			if len(first) != 1 || len(second) != 1 {
				t.Fatalf("stopped %+v and %+v", first, second)
			}
			apart := second[0].At.Sub(first[0].At)
			if apart < tt.atLeast || tt.atMost != 0 && apart > tt.atMost {
				t.Errorf("the second was stopped %s after the first", apart)
			}
			if took := second[0].At.Sub(began); took < time.Duration(tt.hook)*time.Second {
				t.Errorf("the second was stopped after %s, before the hook of the first had ended", took)
			}
			for _, name := range []string{"app", "log"} {
				if n := b.statusOf(pod, name).RestartCount; n != 1 {
					t.Errorf("%s restarted %d times", name, n)
				}
			}
		})
	}
}

// TestDeadlineDuringStop lets a stop that has begun go on, and its result be told.
func TestDeadlineDuringStop(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", sleeps(9))
	r := b.ask("again", pod, func(r *request) { r.Spec.ActiveDeadlineSeconds = ptr.To(int64(6)) })
	b.ends(r, "recreating has exceeded the activeDeadlineSeconds", state{Name: "app", Phase: pending},
		state{Name: "log", Phase: pending})
	b.becomes(r, func(r *request) error {
		stopped := state{Name: "app", Phase: recreating, IsKilled: true}
		if got := r.Status.ContainerRecreateStates; len(got) != 2 || got[0] != stopped {
			return errNotYet
		}
		return nil
	})
	b.until(func() error {
		if b.statusOf(pod, "app").RestartCount == 0 {
			return errNotYet
		}
		return nil
	})
	if n := len(b.stopsOf("log")); n != 0 || r.Status.ContainerRecreateStates[1].Phase != pending {
		t.Errorf("the second was stopped %d times, and is %+v", n, r.Status.ContainerRecreateStates[1])
	}
}

// TestUnreadyGrace waits with the pod out of traffic, and cuts the hook.
func TestUnreadyGrace(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", func(pod *corev1.Pod) {
		sleeps(29)(pod)
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
	})
	began := time.Now()
	r := b.ask("again", pod, func(r *request) {
		onlyApp(r)
		r.Spec.Strategy.UnreadyGracePeriodSeconds, r.Spec.Strategy.TerminationGracePeriodSeconds = ptr.To(int64(2)),
			ptr.To(int64(3))
	})
	b.ends(r, "", up("app"))
	stopped := b.stopsOf("app")
	if len(stopped) != 1 || stopped[0].Grace != 2*time.Second {
		t.Fatalf("stopped %+v", stopped)
	}
	// The condition's time is in whole seconds.
	if took := stopped[0].At.Sub(began); took < 4*time.Second || took > 30*time.Second {
		t.Errorf("stopped after %s, want 2 seconds out of traffic and 3 of the hook", took)
	}
}

// TestFailure has a container that cannot be stopped.
func TestFailure(t *testing.T) {
	for policy, want := range map[v1beta1.ContainerRecreateRequestFailurePolicyType]state{
		v1beta1.ContainerRecreateRequestFailurePolicyFail:   {Name: "log", Phase: pending},
		v1beta1.ContainerRecreateRequestFailurePolicyIgnore: up("log"),
	} {
		t.Run(string(policy), func(t *testing.T) {
			b := start(t, ways{"app": {Stop: func(context.Context) error { return errors.New("no such signal") }}},
				containerrestart.Options{})
			r := b.ask("again", b.pod("web", nil), func(r *request) { r.Spec.Strategy.FailurePolicy = policy })
			b.ends(r, "", state{Name: "app", Phase: failed, Message: "kill container error: no such signal"}, want)
			if n := len(b.stopsOf("log")); (n == 1) != (policy == v1beta1.ContainerRecreateRequestFailurePolicyIgnore) {
				t.Errorf("the other container was stopped %d times", n)
			}
		})
	}
}

// TestNoRuntime is about containers of a runtime that the daemon does not have.
func TestNoRuntime(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", nil)
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].ContainerID = "docker://1"
	}
	r := b.ask("again", pod, onlyApp)
	b.ends(r, "failed to find runtime service: not found runtime service for docker in daemon")
	if b.node.CallsOf("Stop") > 0 {
		t.Error("something was stopped")
	}
}

// TestQueue has two requests for one pod.
func TestQueue(t *testing.T) {
	b := start(t, ways{"app": {Stop: takes(time.Second)}}, containerrestart.Options{})
	pod := b.pod("web", nil)
	first := b.ask("first", pod, onlyApp)
	b.becomes(first, func(r *request) error {
		if r.Status.Phase != recreating {
			return errNotYet
		}
		return nil
	})
	second := b.ask("second", pod, func(r *request) {
		onlyApp(r)
		r.Spec.Strategy.ForceRecreate = true
	})
	b.becomes(second, func(r *request) error {
		if r.Status.Phase != pending {
			return errNotYet
		}
		return nil
	})
	b.ends(first, "", up("app"))
	b.ends(second, "", up("app"))
	if n := b.statusOf(pod, "app").RestartCount; n != 2 {
		t.Errorf("restarted %d times", n)
	}
	// A request that is deleted makes room as well.
	third := b.ask("third", pod, func(r *request) {
		onlyApp(r)
		r.Spec.Strategy.UnreadyGracePeriodSeconds = ptr.To(int64(3600))
	})
	b.becomes(third, func(r *request) error {
		if r.Status.Phase != recreating {
			return errNotYet
		}
		return nil
	})
	fourth := b.ask("fourth", pod, onlyApp)
	if err := b.client.Delete(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	b.ends(fourth, "", up("app"))
}

// TestGivenUp deletes the request, or its pod, while a hook runs.
func TestGivenUp(t *testing.T) {
	tests := map[string]func(*bench, *corev1.Pod, *request) client.Object{
		"the request": func(_ *bench, _ *corev1.Pod, r *request) client.Object { return r },
		"the pod":     func(_ *bench, pod *corev1.Pod, _ *request) client.Object { return pod },
	}
	for name, which := range tests {
		t.Run(name, func(t *testing.T) {
			given := make(chan struct{})
			running := make(chan struct{})
			b := start(t, ways{"app": {Stop: func(ctx context.Context) error {
				close(running)
				<-ctx.Done()
				close(given)
				return ctx.Err()
			}}}, containerrestart.Options{})
			pod := b.pod("web", func(pod *corev1.Pod) { pod.Finalizers = []string{nodetest.Stay} })
			r := b.ask("again", pod, nil)
			await(t, running)
			if err := b.client.Delete(t.Context(), which(b, pod, r)); err != nil {
				t.Fatal(err)
			}
			await(t, given)
			if n := len(b.node.Stops()); n != 0 {
				t.Errorf("%d containers were stopped", n)
			}
			b.until(func() error {
				if err := b.look(t.Context(), r); client.IgnoreNotFound(err) != nil {
					return err
				} else if err == nil && r.Status.Message != "pod has gone" {
					return errNotYet
				}
				return nil
			})
			before := pod.DeepCopy()
			pod.Finalizers = nil
			if err := b.client.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute): //nolint:forbidigo // a limit
		t.Fatal("it does not happen")
	}
}

// TestNewPod is about a pod that was there before under the same name, and about one that has just become ready.
func TestNewPod(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	old := b.pod("web", nil)
	late := old.DeepCopy()
	if err := b.client.Delete(t.Context(), old, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	b.until(func() error {
		if err := b.look(t.Context(), old); client.IgnoreNotFound(err) != nil || err == nil {
			return errNotYet
		}
		return nil
	})
	pod := b.pod("web", nil)
	b.ask("late", late, onlyApp)
	b.ends(b.ask("again", pod, onlyApp), "", up("app"))
	if n := len(b.stopsOf("app")); n != 1 {
		t.Errorf("stopped %d times", n)
	}
}

// TestEvents looks at what a user sees of the pod.
func TestEvents(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
		}
	})
	b.ends(b.ask("again", pod, onlyApp), "", up("app"))
	about := corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: b.namespace, Name: "web", UID: pod.UID, FieldPath: "spec.containers{app}",
	}
	from := corev1.EventSource{Component: "kruise-daemon-crr", Host: b.nodeName}
	want := []corev1.Event{
		{
			Type:           "Normal",
			Reason:         "Killing",
			Message:        "Stopping container app by ContainerRecreateRequest again",
			InvolvedObject: about,
			Source:         from,
		},
		{
			Type:           "Warning",
			Reason:         "FailedPreStopHook",
			Message:        "PreStopHook failed: the command ended with exit code 127",
			InvolvedObject: about,
			Source:         from,
		},
	}
	var got []corev1.Event
	b.until(func() error {
		if got = b.events(pod); len(got) < len(want) {
			return errNotYet
		}
		return nil
	})
	slices.SortFunc(got, func(a, b corev1.Event) int { return strings.Compare(a.Type, b.Type) })
	only := cmpopts.IgnoreFields(corev1.Event{}, "TypeMeta", "ObjectMeta", "FirstTimestamp", "LastTimestamp", "Count",
		"EventTime", "ReportingController", "ReportingInstance")
	if diff := cmp.Diff(want, got, only); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

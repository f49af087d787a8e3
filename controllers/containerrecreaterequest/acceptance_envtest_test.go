//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A container restarts once; the request says so, is kept for as long as it asked, and goes.
func TestRestart(t *testing.T) {
	b, n := start(t)
	pod := b.pod("web")
	old := pod.Status.ContainerStatuses[0].ContainerID
	r := b.ask("again", pod, ttl(2), func(r *request) { r.Spec.Strategy.MinStartedSeconds = 2 })
	b.becomes(r, ended(""))
	if err := b.look(pod); err != nil {
		t.Fatal(err)
	}
	is := pod.Status.ContainerStatuses[0]
	want := v1beta1.ContainerRecreateRequestStatus{
		Phase: completed, CompletionTime: r.Status.CompletionTime,
		ContainerRecreateStates: states("app", succeeded),
		ContainerStatusSnapshot: []v1beta1.ContainerRecreateRequestSyncContainerStatus{
			{Name: "app", Ready: true, RestartCount: 1, ContainerID: is.ContainerID},
		},
	}
	if diff := cmp.Diff(want, r.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if took := r.Status.CompletionTime.Sub(is.State.Running.StartedAt.Time); took < 2*time.Second {
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
	if kept := time.Since(r.Status.CompletionTime.Time); kept < 2*time.Second {
		t.Errorf("it was kept for %s, want 2s", kept)
	}
}

// states are of containers that were stopped, by name and phase, but for those that are Pending.
func states(pairs ...any) []v1beta1.ContainerRecreateRequestContainerRecreateState {
	var all []v1beta1.ContainerRecreateRequestContainerRecreateState
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		phase, _ := pairs[i+1].(v1beta1.ContainerRecreateRequestPhase)
		all = append(all, v1beta1.ContainerRecreateRequestContainerRecreateState{
			Name: name, Phase: phase, IsKilled: phase != pending,
		})
	}
	return all
}

// However it is asked for, each container restarts once.
func TestBothRestart(t *testing.T) {
	for name, c := range map[string]struct {
		why string
		pod []func(*corev1.Pod)
		ask []func(*request)
	}{
		"plain":              {"", nil, nil},
		"in order":           {"", nil, []func(*request){ordered}},
		"by force":           {"", nil, []func(*request){force}},
		"by force, in order": {"", nil, []func(*request){force, ordered}},
		"young": {
			"that a container started after the request was made does not tell that it is the new one",
			[]func(*corev1.Pod){young},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := start(t)
			pod := b.pod("web", c.pod...)
			r := b.ask("again", pod, append(c.ask, both)...)
			b.becomes(r, ended(""))
			if err := b.look(pod); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(states("app", succeeded, "log", succeeded), r.Status.ContainerRecreateStates); diff != "" {
				t.Errorf("%s: states (-want +got):\n%s", c.why, diff)
			}
			for _, s := range pod.Status.ContainerStatuses {
				if at := n.kills(r, s.Name); len(at) != 1 || s.RestartCount != 1 {
					t.Errorf("%s: %s was stopped at %v, and has restarted %d times", c.why, s.Name, at, s.RestartCount)
				}
			}
		})
	}
}

// In order, the second container runs until the API server knows the first as ready; else it does not wait for that.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		ask  []func(*request)
		wait bool
	}{
		"in order": {[]func(*request){ordered}, true},
		"not":      {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := start(t)
			n.set(func() { n.unready["app"] = true })
			r := b.ask("again", b.pod("web"), append(c.ask, both)...)
			b.becomes(r, func(r *request) error {
				known := r.Status.ContainerStatusSnapshot
				if len(known) == 0 || known[0].Name != "app" || known[0].Ready {
					return errors.New("the API server does not know app")
				}
				if second := n.kills(r, "log"); len(second) == 0 && !c.wait {
					return errors.New("log is not stopped")
				}
				return nil
			})
			if second := n.kills(r, "log"); len(second) > 0 && c.wait || r.Status.CompletionTime != nil {
				t.Errorf("app is not ready, and log was stopped at %v; status %+v", second, r.Status)
			}
			ready := time.Now()
			n.set(func() { n.unready["app"] = false })
			b.becomes(r, ended(""))
			if second := n.kills(r, "log"); len(second) != 1 || c.wait && second[0].Before(ready) {
				t.Errorf("app is ready since %s, log was stopped at %s", ready, second)
			}
		})
	}
}

// A container that cannot be stopped ends the request, or is passed over.
func TestCannotBeStopped(t *testing.T) {
	for policy, want := range map[v1beta1.ContainerRecreateRequestFailurePolicyType]struct {
		log      v1beta1.ContainerRecreateRequestPhase
		restarts int32
	}{
		v1beta1.ContainerRecreateRequestFailurePolicyFail:   {pending, 0},
		v1beta1.ContainerRecreateRequestFailurePolicyIgnore: {succeeded, 1},
	} {
		t.Run(string(policy), func(t *testing.T) {
			b, n := start(t)
			n.set(func() { n.broken["app"] = true })
			pod := b.pod("web")
			r := b.ask("again", pod, both, func(r *request) { r.Spec.Strategy.FailurePolicy = policy })
			b.becomes(r, ended(""))
			all := states("app", failed, "log", want.log)
			all[0].IsKilled, all[0].Message = false, "kill container error: it does not stop"
			if diff := cmp.Diff(all, r.Status.ContainerRecreateStates); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			if err := b.look(pod); err != nil {
				t.Fatal(err)
			}
			if s := pod.Status.ContainerStatuses; s[0].RestartCount != 0 || s[1].RestartCount != want.restarts {
				t.Errorf("containers are %+v", s)
			}
		})
	}
}

// The snapshot tells of containers that started after the request, and of no others.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reconcile(ahead(0), plain)
	pod := b.pod("web")
	r := b.ask("again", pod, both)
	b.phase(r, recreating)
	b.node.crash(pod, "log")
	want := []v1beta1.ContainerRecreateRequestSyncContainerStatus{
		{Name: "log", Ready: true, RestartCount: 1, ContainerID: fmt.Sprintf("fake://%s-log-1", pod.UID)},
	}
	b.becomes(r, func(r *request) error {
		if diff := cmp.Diff(want, r.Status.ContainerStatusSnapshot); diff != "" {
			return fmt.Errorf("app has run for an hour (-want +got):\n%s", diff)
		}
		return nil
	})
}

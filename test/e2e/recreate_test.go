//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// recreation is a pod of one test, whose containers are restarted.
type recreation struct {
	*deployed
	namespace string
	was       *corev1.Pod
}

// newRecreation makes a pod of sleeping containers on a node, and waits until it is ready.
func (m *deployed) newRecreation(t *testing.T, node string, change func(*corev1.PodSpec), names ...string) *recreation {
	t.Helper()
	r := &recreation{deployed: m, namespace: m.Namespace(t)}
	sleeper := m.Push(t, image.Spec{Name: "recreate/sleeper:1"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "pod"}}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(20))
	for _, name := range names {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: sleeper.Name})
	}
	if change != nil {
		change(&pod.Spec)
	}
	if err := m.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.ReadinessGates) > 0 {
		// The creator of pods with the gate sets it at first.
		set := client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"KruisePodReady","status":"True"}]}}`))
		if err := m.Client.Status().Patch(t.Context(), pod, set); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func(ctx context.Context) error {
		r.was = r.pod(t)
		if !ready(r.was) {
			return fmt.Errorf("not ready: %+v", r.was.Status)
		}
		return nil
	})
	return r
}

func (r *recreation) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := r.Client.Get(t.Context(), types.NamespacedName{Namespace: r.namespace, Name: "pod"}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// ask makes a request for the containers.
func (r *recreation) ask(
	t *testing.T, name string, change func(*v1beta1.ContainerRecreateRequestSpec), containers ...string,
) error {
	t.Helper()
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	request.Spec.PodName = "pod"
	for _, c := range containers {
		request.Spec.Containers = append(request.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: c})
	}
	request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	if change != nil {
		change(&request.Spec)
	}
	return r.Client.Create(t.Context(), request)
}

func (r *recreation) request(ctx context.Context, name string) (*v1beta1.ContainerRecreateRequest, error) {
	request := &v1beta1.ContainerRecreateRequest{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, request)
	return request, err
}

// ends waits until the request is over, with the states of its containers.
func (r *recreation) ends(
	t *testing.T, name, message string, want ...v1beta1.ContainerRecreateRequestPhase,
) *v1beta1.ContainerRecreateRequest {
	t.Helper()
	var now *v1beta1.ContainerRecreateRequest
	eventually(t, func(ctx context.Context) (err error) {
		if now, err = r.request(ctx, name); err == nil &&
			(now.Status.CompletionTime == nil || now.Labels[v1beta1.ContainerRecreateRequestActiveKey] != "") {
			err = fmt.Errorf("%s: %+v %v", name, now.Status, now.Labels)
		}
		return err
	})
	var got []v1beta1.ContainerRecreateRequestPhase
	for _, state := range now.Status.ContainerRecreateStates {
		got = append(got, state.Phase)
	}
	if now.Status.Phase != v1beta1.ContainerRecreateRequestCompleted || !strings.Contains(now.Status.Message, message) ||
		fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s ended with %+v, want %v, %q", name, now.Status, want, message)
	}
	return now
}

// restarted compares what runs with what ran: so many restarts of each container, and the same pod at the same address.
func (r *recreation) restarted(t *testing.T, want map[string]int32) *corev1.Pod {
	t.Helper()
	var is *corev1.Pod
	eventually(t, func(context.Context) error {
		is = r.pod(t)
		if !ready(is) {
			return fmt.Errorf("not ready: %+v", is.Status)
		}
		return nil
	})
	for name, s := range statuses(is) {
		if s.RestartCount != want[name] || (s.ContainerID == statuses(r.was)[name].ContainerID) != (want[name] == 0) {
			t.Errorf("%s restarted %d times, want %d; it was %s and is %s",
				name, s.RestartCount, want[name], statuses(r.was)[name].ContainerID, s.ContainerID)
		}
	}
	if is.UID != r.was.UID || is.Status.PodIP != r.was.Status.PodIP {
		t.Errorf("the pod was %s at %s, and is %s at %s", r.was.UID, r.was.Status.PodIP, is.UID, is.Status.PodIP)
	}
	return is
}

const succeeded = v1beta1.ContainerRecreateRequestSucceeded

// hook makes a container take its time before it stops.
func hook(seconds int) *corev1.Lifecycle {
	return &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", fmt.Sprint(seconds)}}},
	}
}

// testRecreate restarts three of four containers in order: out of traffic before the first, each after the one before
// is ready, with a hook.
func (m *deployed) testRecreate(t *testing.T) {
	r := m.newRecreation(t, "node-1", func(s *corev1.PodSpec) {
		s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
		s.Containers[0].Lifecycle = hook(4)
	}, "a", "b", "c", "other")
	err := r.ask(t, "all", func(s *v1beta1.ContainerRecreateRequestSpec) {
		s.Strategy.OrderedRecreate, s.Strategy.MinStartedSeconds, s.Strategy.UnreadyGracePeriodSeconds = true, 1,
			ptr.To(int64(2))
	}, "a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		for _, c := range r.pod(t).Status.Conditions {
			want := fmt.Sprintf(`[{"userAgent":"ContainerRecreateRequest","key":"%s/all"}]`, r.namespace)
			if c.Type == kruise.KruisePodReadyConditionType && c.Status == corev1.ConditionFalse && c.Message == want {
				return nil
			}
		}
		return errors.New("the pod is not taken out of traffic")
	})
	request := r.ends(t, "all", "", succeeded, succeeded, succeeded)
	is := statuses(r.restarted(t, map[string]int32{"a": 1, "b": 1, "c": 1}))
	// Times of containers are whole seconds, rounded down.
	if end := is["a"].LastTerminationState.Terminated.FinishedAt.Time; end.Before(request.CreationTimestamp.Add(6 *
		time.Second)) {
		t.Errorf("a ended at %s, asked for at %s: 2 s out of traffic and 4 s of its hook come first",
			end, request.CreationTimestamp)
	}
	for before, after := range map[string]string{"a": "b", "b": "c"} {
		began, ended := is[before].State.Running.StartedAt, is[after].LastTerminationState.Terminated.FinishedAt
		if !ended.After(began.Time) {
			t.Errorf("%s ended at %s, and %s before it restarted at %s", after, ended, before, began)
		}
	}
}

// begun waits until the daemon stops a container for the request.
func (r *recreation) begun(t *testing.T, name string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		now, err := r.request(ctx, name)
		if err == nil && now.Status.Phase != v1beta1.ContainerRecreateRequestRecreating {
			err = fmt.Errorf("%+v", now.Status)
		}
		return err
	})
	eventually(t, func(ctx context.Context) error {
		var list corev1.EventList
		if err := r.Client.List(ctx, &list, client.InNamespace(r.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Name == "pod" && e.Reason == "Killing" && strings.Contains(e.Message, name) {
				return nil
			}
		}
		return fmt.Errorf("no event Killing among %d events", len(list.Items))
	})
}

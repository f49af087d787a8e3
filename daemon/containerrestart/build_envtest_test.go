//go:build envtest

package containerrestart_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	pure "github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

type (
	request  = v1beta1.ContainerRecreateRequest
	strategy = v1beta1.ContainerRecreateRequestStrategy
	state    = v1beta1.ContainerRecreateRequestContainerRecreateState
)

const (
	pending    = v1beta1.ContainerRecreateRequestPending
	recreating = v1beta1.ContainerRecreateRequestRecreating
	succeeded  = v1beta1.ContainerRecreateRequestSucceeded
	failed     = v1beta1.ContainerRecreateRequestFailed
	completed  = v1beta1.ContainerRecreateRequestCompleted
)

// pod runs the containers app and log.
func (b *bench) pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: b.nodeName, Containers: []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "log", Image: "log:1"}},
		},
	}
	if change != nil {
		change(pod)
	}
	if err := b.client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	b.until(func() error {
		if err := b.look(b.Context(), pod); err != nil {
			return err
		}
		for _, c := range pod.Status.ContainerStatuses {
			if !c.Ready {
				return fmt.Errorf("container %s is not ready", c.Name)
			}
		}
		if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
			return errNotYet
		}
		return nil
	})
	return pod
}

// sleeps has the container app sleep before it stops.
func sleeps(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}},
		}
	}
}

// ask makes a request about both containers of a pod, as the webhook would let it pass.
func (b *bench) ask(name string, pod *corev1.Pod, change func(*request)) *request {
	b.Helper()
	r := &request{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName:    pod.Name,
			Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}, {Name: "log"}},
			Strategy:   &strategy{},
		},
	}
	if change != nil {
		change(r)
	}
	r, faults := pure.Admit(r, pod, &corev1.Node{})
	if len(faults) > 0 {
		b.Fatal(faults.ToAggregate())
	}
	if err := b.client.Create(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	return r
}

// onlyApp asks for one container.
func onlyApp(r *request) { r.Spec.Containers = r.Spec.Containers[:1] }

// becomes waits for a request to be as wanted.
func (b *bench) becomes(r *request, check func(*request) error) {
	b.Helper()
	b.until(func() error {
		fresh := r.DeepCopy()
		if err := b.look(b.Context(), fresh); err != nil {
			return err
		}
		*r = *fresh
		if err := check(r); err != nil {
			return fmt.Errorf("%s: %w; status %+v", r.Name, err, r.Status)
		}
		return nil
	})
}

// ends waits for a request to be over, with a message, and its containers in some states.
func (b *bench) ends(r *request, message string, states ...state) {
	b.Helper()
	b.becomes(r, func(r *request) error {
		if r.Status.Phase != completed || r.Labels[v1beta1.ContainerRecreateRequestActiveKey] != "" {
			return errNotYet
		}
		return nil
	})
	if r.Status.Message != message || !slices.Equal(r.Status.ContainerRecreateStates, states) {
		b.Errorf("%s ends with %q %+v, want %q %+v",
			r.Name, r.Status.Message, r.Status.ContainerRecreateStates, message, states)
	}
}

// up is a container that was stopped and has restarted.
func up(name string) state { return state{Name: name, Phase: succeeded, IsKilled: true} }

// stopsOf are those of the containers of a name.
func (b *bench) stopsOf(name string) []nodetest.Stopped {
	var some []nodetest.Stopped
	for _, s := range b.node.Stops() {
		if s.Name == name {
			some = append(some, s)
		}
	}
	return some
}

// statusOf is that of a container now.
func (b *bench) statusOf(pod *corev1.Pod, name string) corev1.ContainerStatus {
	b.Helper()
	if err := b.look(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name {
			return c
		}
	}
	b.Fatalf("pod %s has no container %s", pod.Name, name)
	return corev1.ContainerStatus{}
}

// events of a pod, but for those of the API server's own.
func (b *bench) events(pod *corev1.Pod) []corev1.Event {
	b.Helper()
	var list corev1.EventList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID != pod.UID })
}

// takes is a stop that takes a while.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

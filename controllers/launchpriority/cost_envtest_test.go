//go:build envtest

package launchpriority_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/launchpriority"
	"github.com/kruisekit/kruisekit/launch"
)

// A reconciler that starts in the middle goes on, and leaves alone who does not wait.
func TestQuiet(t *testing.T) {
	b := newBench(t)
	stop := b.reconcile(launchpriority.Options{}, plain)
	done := b.pod("done", nil, "Ordered", "Ordered")
	b.kubelet(done)
	b.complete(done)
	half := b.pod("half", nil, "Ordered", "Ordered", "Ordered")
	b.has(half, "p_0")
	b.set(half, ready, "a")
	b.has(half, "p_-1", "p_0")
	b.set(half, blocked, "c")
	stop()

	crashing := b.pod("crashing", func(pod *corev1.Pod) { pod.Annotations[kruise.ContainerLaunchPriorityKey] = "Ordered" },
		"", "")
	b.set(crashing, ready, "a", "b") // as the reference lets it be, without a mark
	b.Status(crashing, func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	})
	b.set(done, func(s *corev1.ContainerStatus) {
		s.Ready, s.State.Waiting = false, &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}, "a")
	b.pod("plain", nil, "", "")
	b.pod("terminating", func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/x"} }, "Ordered", "Ordered")
	going := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "terminating"}}
	b.Gone(going)
	t.Cleanup(func() {
		_ = b.Client.Patch(t.Context(), going, client.RawPatch(launch.PatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	b.Asked()

	b.reconcile(launchpriority.Options{}, plain)
	b.set(half, ready, "b")
	b.has(half, "p_-1", "p_-2", "p_0")
	b.complete(half)
	b.Still()
	want := []string{"PATCH configmaps/half-barrier 200", "PATCH pods/half 200"}
	if diff := cmp.Diff(want, b.written()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 5 {
		b.Status(half, func(pod *corev1.Pod) { pod.Status.Message = fmt.Sprint(i) })
		b.Status(done, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount++ })
	}
	b.Still()
	if all := b.written(); len(all) > 0 {
		t.Errorf("asked for nothing: %q", all)
	}
	b.Status(going, func(*corev1.Pod) {})
	if b.barrier(going) != nil {
		t.Error("a pod that goes gets a barrier")
	}
}

// A container can count from its start on, where that is asked for.
func TestStarted(t *testing.T) {
	b := newBench(t)
	b.reconcile(launchpriority.Options{Policy: launch.Policy{Started: true}}, plain)
	pod := b.pod("web", nil, "Ordered", "Ordered")
	b.has(pod, "p_0")
	started := true
	b.set(pod, func(s *corev1.ContainerStatus) {
		unready(s)
		s.Started = &started
	}, "a")
	b.has(pod, "p_-1", "p_0")
}

// Many pods at once, each in its order.
func TestMany(t *testing.T) {
	b := newBench(t)
	b.reconcile(launchpriority.Options{}, plain)
	const many = 20
	var pods []*corev1.Pod
	for i := range many {
		pods = append(pods, b.pod(fmt.Sprintf("web-%d", i), nil, "Ordered", "Ordered"))
	}
	for _, pod := range pods {
		if diff := cmp.Diff([]string{"a", "b"}, b.kubelet(pod)); diff != "" {
			t.Error(diff)
		}
	}
	for _, pod := range pods {
		b.complete(pod)
	}
	b.Still()
	asked := b.written()
	if len(asked) > many*3 {
		t.Errorf("%d writes for %d pods: %q", len(asked), many, asked)
	}
	if watched := b.Watched(); !slices.Equal(watched, []string{"pods"}) {
		t.Errorf("there are informers of %q", watched)
	}
}

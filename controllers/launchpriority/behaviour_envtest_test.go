//go:build envtest

package launchpriority_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/launch"
)

// Containers start in their order, and a pod costs a write of the barrier at each step, and the mark. Package launch
// has the laws.
func TestOrder(t *testing.T) {
	b := newBench(t)
	b.reconcile(plain)
	pod := b.pod("web", nil, "3", "5", "0", "-1", "3")
	if diff := cmp.Diff([]string{"b", "a", "e", "c", "d"}, b.kubelet(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.complete(pod)
	b.Still()
	want := []string{"POST configmaps 201", "PATCH configmaps/web-barrier 200", "PATCH pods/web 200"}
	if diff := cmp.Diff(want, b.written()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	barrier := b.barrier(pod)
	shape := metav1.ObjectMeta{
		Namespace: b.Namespace, Name: "web-barrier",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: pod.UID}},
	}
	ignored := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp", "ManagedFields")
	if diff := cmp.Diff(shape, barrier.ObjectMeta, ignored); diff != "" {
		t.Errorf("the barrier is not as the reference makes it (-want +got):\n%s", diff)
	}
	if events := b.Events(pod, ""); len(events) > 0 {
		t.Errorf("events %q", events)
	}
	if watched := b.Watched(); !slices.Equal(watched, []string{"pods"}) {
		t.Errorf("there are informers of %q", watched)
	}
}

// A pod that comes back under its name has its containers ordered again, though the former barrier is still there.
func TestFormerBarrier(t *testing.T) {
	b := newBench(t)
	b.reconcile(plain)
	pod := b.pod("web-0", nil, "Ordered", "Ordered")
	b.kubelet(pod)
	b.complete(pod)
	former := b.has(pod, "p_-1", "p_0")
	b.Gone(pod)
	b.Still()
	b.Asked()
	again := b.pod("web-0", nil, "Ordered", "Ordered")
	barrier := b.has(again, "p_0")
	if barrier.UID == former.UID || barrier.OwnerReferences[0].UID != again.UID {
		t.Errorf("the barrier is %s of %v", barrier.UID, barrier.OwnerReferences)
	}
	b.Still()
	want := []string{"DELETE configmaps/web-0-barrier 200", "POST configmaps 201"}
	if diff := cmp.Diff(want, b.written()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, b.kubelet(again)); diff != "" {
		t.Error(diff)
	}
	b.complete(again)
}

// A pod of the cache that is not there any more does not cost a later one its barrier. Here the reconciler of the
// earlier pod is late: it is asked about it when the later one has its barrier.
func TestLaterBarrierIsKept(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web-0", nil, "Ordered", "Ordered")
	stale := pod.DeepCopy()
	b.Gone(pod)
	again := b.pod("web-0", nil, "Ordered", "Ordered")
	stop := b.reconcile(plain)
	barrier := b.has(again, "p_0")
	stop()
	b.Asked()
	b.reconcile(func(c client.WithWatch) client.Client { return staleReader{c, stale} })
	b.Until(func() error {
		if !slices.Contains(b.Asked(), "GET pods/web-0 200") {
			return fmt.Errorf("nobody has asked which pod is there")
		}
		return nil
	})
	b.Still()
	if now := b.barrier(again); now == nil || now.UID != barrier.UID {
		t.Errorf("the barrier of the pod that is there is gone: %v", now)
	}
}

// A barrier that is lost is made again, so that containers can start again.
func TestLost(t *testing.T) {
	b := newBench(t)
	b.reconcile(plain)
	pod := b.pod("web", nil, "Ordered", "Ordered")
	barrier := b.has(pod, "p_0")
	b.Gone(barrier)
	b.set(pod, blocked, "a", "b")
	if again := b.has(pod, "p_0"); again.UID == barrier.UID {
		t.Error("it is the same barrier")
	}

	b.kubelet(pod)
	b.complete(pod)
	b.Gone(b.barrier(pod))
	b.set(pod, blocked, "b")
	b.has(pod, "p_-1", "p_0")

	// One key of it, by hand.
	barrier = b.barrier(pod)
	b.set(pod, ready, "b")
	if err := b.Client.Patch(t.Context(), barrier,
		client.RawPatch(launch.PatchType, []byte(`{"data":{"p_-1":null}}`))); err != nil {
		t.Fatal(err)
	}
	b.set(pod, blocked, "b")
	b.has(pod, "p_-1", "p_0")
}

// A barrier that is lost in the moment when a key is added to it is made again.
func TestLostBeforeWrite(t *testing.T) {
	b := newBench(t)
	b.reconcile(plain)
	pod := b.pod("web", nil, "Ordered", "Ordered", "Ordered")
	b.Gone(b.has(pod, "p_0"))
	b.set(pod, ready, "a")
	b.has(pod, "p_-1", "p_0")
}

// What a user has under the name of a barrier is used, as the reference does, and never deleted.
func TestStranger(t *testing.T) {
	b := newBench(t)
	mine := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "web-barrier"}, Data: map[string]string{"mine": "1"},
	}
	if err := b.Client.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	b.reconcile(plain)
	pod := b.pod("web", nil, "Ordered", "Ordered")
	if got := b.has(pod, "mine", "p_0"); got.UID != mine.UID || len(got.OwnerReferences) > 0 {
		t.Errorf("%+v", got.ObjectMeta)
	}
}

// What the reference began goes on: its barrier is empty at first, and then has some keys.
func TestTakeover(t *testing.T) {
	b := newBench(t)
	for i, keys := range [][]string{{}, {"p_0"}, {"p_0", "p_-1"}, {"p_0", "p_-1", "p_-2"}} {
		pod := b.pod(fmt.Sprintf("web-%d", i), nil, "Ordered", "Ordered", "Ordered")
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace:       b.Namespace,
			Name:            pod.Name + "-barrier",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		}, Data: map[string]string{}}
		for j, k := range keys {
			theirs.Data[k] = "true"
			if j > 0 {
				b.set(pod, ready, string(rune('a'+j-1)))
			}
		}
		if err := b.Client.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
	}
	b.reconcile(plain)
	for i := range 4 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: fmt.Sprintf("web-%d", i)}}
		if err := b.Look(pod); err != nil {
			t.Fatal(err)
		}
		before := b.barrier(pod).UID
		b.kubelet(pod)
		b.complete(pod)
		if b.barrier(pod).UID != before {
			t.Errorf("%s: the barrier was replaced", pod.Name)
		}
	}
}

// A reconciler that starts in the middle goes on, and leaves alone who does not wait.
func TestQuiet(t *testing.T) {
	b := newBench(t)
	stop := b.reconcile(plain)
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

	b.reconcile(plain)
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

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

	"github.com/kruisekit/kruisekit/controllers/launchpriority"
	"github.com/kruisekit/kruisekit/launch"
)

// Containers start in their order, and a pod costs a write for each priority, and the mark.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		why   string
		asks  []string
		want  []string
		steps int
	}{
		"ordered":    {"the position decides", []string{"Ordered", "Ordered", "Ordered"}, []string{"a", "b", "c"}, 3},
		"priorities": {"higher ones start first", []string{"", "10"}, []string{"b", "a"}, 2},
		"same level": {"they start together", []string{"3", "5", "0", "-1", "3"}, []string{"b", "a", "e", "c", "d"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reconcile(launchpriority.Options{}, plain)
			pod := b.pod("web", nil, c.asks...)
			got := b.kubelet(pod)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			b.complete(pod)
			b.Still()
			want := []string{"POST configmaps 201"}
			if c.steps > 1 {
				want = append(want, "PATCH configmaps/web-barrier 200")
			}
			want = append(want, "PATCH pods/web 200")
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
		})
	}
}

// A container that is not ready any more holds up what has not started, and nothing else.
func TestUnready(t *testing.T) {
	b := newBench(t)
	b.reconcile(launchpriority.Options{}, plain)
	pod := b.pod("web", nil, "Ordered", "Ordered", "Ordered")
	b.has(pod, "p_0")
	b.set(pod, ready, "a")
	b.has(pod, "p_-1", "p_0")
	b.set(pod, unready, "a")
	b.set(pod, ready, "b")
	b.Still()
	if got := b.keys(pod); !slices.Equal(got, []string{"p_-1", "p_0"}) {
		t.Errorf("%q are open", got)
	}
	b.set(pod, ready, "a")
	b.has(pod, "p_-1", "p_-2", "p_0")
	b.complete(pod)
}

// A pod that comes back under its name has its containers ordered again, though the former barrier is still there.
func TestFormerBarrier(t *testing.T) {
	b := newBench(t)
	b.reconcile(launchpriority.Options{}, plain)
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
	stop := b.reconcile(launchpriority.Options{}, plain)
	barrier := b.has(again, "p_0")
	stop()
	b.Asked()
	b.reconcile(launchpriority.Options{}, func(c client.WithWatch) client.Client { return staleReader{c, stale} })
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
	b.reconcile(launchpriority.Options{}, plain)
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
	b.reconcile(launchpriority.Options{}, plain)
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
	b.reconcile(launchpriority.Options{}, plain)
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
	b.reconcile(launchpriority.Options{}, plain)
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

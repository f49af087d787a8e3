package finish_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/write"
)

// The request is the reference's, to the letter.
func TestRequest(t *testing.T) {
	plan := finish.Next(finish.Input{
		Pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), Node: realNode(), Now: at(1),
	})
	want := &request{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "sidecar-termination-u1", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: "job", UID: "u1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "job", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "s1"}},
			Strategy: &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true, FailurePolicy: "Ignore"},
		},
	}
	if diff := cmp.Diff(want, created(plan)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pod := newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv))
	for range 2 {
		if _, faults := containerrestart.Admit(created(plan), pod, realNode()); len(faults) > 0 {
			t.Errorf("admission refuses the request for a pod that is %s: %v", pod.Status.Phase, faults)
		}
		// As before the request for the last sidecars.
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.SidecarTerminated, Status: corev1.ConditionTrue}}
	}
	if want := "The others have finished: stopping sidecars s1 by ContainerRecreateRequest " +
		"sidecar-termination-u1"; plan.Event != want {
		t.Errorf("event %q", plan.Event)
	}
}

// The pauses between requests grow, and end growing.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		end  int
		want time.Duration
	}{
		"at once":   {"ten seconds at least", 2, 10 * time.Second},
		"soon":      {"", 60, time.Minute},
		"later":     {"", 150, 150 * time.Second},
		"very late": {"five minutes at most", 4000, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(never, mainOf("m1", ended(0)), mainOf("main", ended(0)), sidecar("s1", running(), killEnv))
			pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = stamp(-100)
			in := finish.Input{Pod: pod, Node: realNode(), Request: over(made("s1"), c.end, "no"), Now: at(c.end)}
			if got := finish.Next(in); got.RequeueAfter != c.want || len(got.Writes) > 0 {
				t.Errorf("%s: %s, %+v", c.why, got.RequeueAfter, got)
			}
			in.Now = in.Now.Add(c.want)
			if got := finish.Next(in); inShort(got).Delete != "r1" {
				t.Errorf("after the pause: %+v", got)
			}
		})
	}
}

func TestWrites(t *testing.T) {
	data := func(w *write.Write) string {
		text, err := w.Data()
		if err != nil {
			t.Fatal(err)
		}
		return string(w.Type) + " " + w.Subresource + " " + string(text)
	}
	pod := newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv), sidecar("s2", running(), imageEnv))
	in := finish.Input{Pod: pod, Node: virtualNode(), Now: at(1)}
	action := finish.Next(in)
	want := `application/strategic-merge-patch+json  {"metadata":{"resourceVersion":"5","uid":"u1"},"spec":{"containers":[{"image":"exit:1","name":"s1"},{"image":"exit:1","name":"s2"}]}}`
	if writes := action.Writes; len(writes) != 1 || data(writes[0]) != want {
		t.Errorf("%d writes, %s", len(writes), data(writes[0]))
	}
	if want := "The main containers have finished: sidecars s1, s2 get the image that ends them"; action.Event != want {
		t.Errorf("event %q", action.Event)
	}
	in = finish.Input{
		Pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv, ignoreEnv)),
		Node: realNode(),
		Now:  at(200),
	}
	in.Request = over(made("s0"), 3, "")
	writes := finish.Next(in).Writes
	if len(writes) != 3 || writes[1].Verb != write.Delete || writes[1].Object.GetUID() != "r1" ||
		writes[2].Verb != write.Create {
		t.Fatalf("%d writes: %+v", len(writes), writes)
	}
	want = `application/strategic-merge-patch+json status {"metadata":{"resourceVersion":"5","uid":"u1"},"status":{"conditions":[{"type":"SidecarTerminated","status":"True","lastProbeTime":null,` +
		`"lastTransitionTime":"2026-11-21T12:03:20Z","message":"Terminated by Sidecar Terminator"}],"phase":"Succeeded"}}`
	if got := data(writes[0]); got != want {
		t.Errorf("%s", got)
	}
}

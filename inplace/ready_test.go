package inplace_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// TestReadyConditions looks at the conditions on the way out of traffic and back.
func TestReadyConditions(t *testing.T) {
	from := template(container("c1", "app:1"))
	pod := running(from, "web-1")
	u := inplace.Update{Pod: pod, Change: diff(t, from, with(from, image(0, "app:2"))), Revision: "web-2"}
	a, err := inplace.Next(u, inplace.Policy{}, noon())
	if err != nil {
		t.Fatal(err)
	}
	pod = applied(t, pod, a)
	want := corev1.PodCondition{
		Type:               kruise.InPlaceUpdateReady,
		Status:             corev1.ConditionFalse,
		Reason:             kruise.InPlaceUpdateReadyReasonStart,
		LastTransitionTime: metav1.NewTime(noon().Local()),
	}
	if d := cmp.Diff(&want, condition(pod, kruise.InPlaceUpdateReady)); d != "" {
		t.Errorf("out of traffic (-want +got):\n%s", d)
	}
	ready := condition(pod, corev1.PodReady)
	if ready.Status != corev1.ConditionFalse || ready.Reason != kruise.ReasonReadinessGatesNotReady ||
		!strings.Contains(ready.Message, string(kruise.InPlaceUpdateReady)) {
		t.Errorf("not ready follows at once, got %v", ready)
	}
	if len(pod.Status.Conditions) != 3 {
		t.Errorf("want no new condition, got %v", pod.Status.Conditions)
	}
	u.Pod = pod
	if a, err = inplace.Next(u, inplace.Policy{}, noon()); err != nil {
		t.Fatal(err)
	}
	pod = applied(t, pod, a)
	restart(pod, 0)
	if a, err = inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon()); err != nil {
		t.Fatal(err)
	}
	pod = applied(t, pod, a)
	want = corev1.PodCondition{
		Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon().Local()),
	}
	if d := cmp.Diff(&want, condition(pod, kruise.InPlaceUpdateReady)); d != "" {
		t.Errorf("back in traffic (-want +got):\n%s", d)
	}
	if condition(pod, corev1.PodReady).Status != corev1.ConditionFalse {
		t.Error("ready is for the kubelet to say")
	}
}

// TestReadyIsNotForced is for pods that are not ready by themselves.
func TestReadyIsNotForced(t *testing.T) {
	from := template(container("c1", "app:1"))
	for name, kind := range map[string]corev1.PodConditionType{
		"containers": corev1.ContainersReady, "pod": corev1.PodReady,
	} {
		t.Run(name, func(t *testing.T) {
			pod := running(from, "web-1")
			condition(pod, kind).Status = corev1.ConditionFalse
			before := *condition(pod, corev1.PodReady)
			a, err := inplace.Next(inplace.Update{
				Pod: pod, Change: diff(t, from, with(from, image(0, "app:2"))), Revision: "web-2",
			}, inplace.Policy{}, noon())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, *condition(applied(t, pod, a), corev1.PodReady)); d != "" {
				t.Errorf("ready changed (-want +got):\n%s", d)
			}
		})
	}
}

// TestMakeReadyTestsWhatItSaw: an update that began meanwhile keeps the pod out of traffic.
func TestMakeReadyTestsWhatItSaw(t *testing.T) {
	cases := map[string]struct {
		state  string
		then   func(*corev1.Pod)
		refuse bool
	}{
		"another update: it is under way": {
			state:  oneImage,
			then:   stateText(strings.ReplaceAll(oneImage, "web-2", "web-3")),
			refuse: true,
		},
		"first update: it is under way": {then: stateText(oneImage), refuse: true},
		"revision only: another update is about to come": {
			state:  oneImage,
			then:   func(p *corev1.Pod) { p.Labels[kruise.PodRevisionLabelKey] = "web-3" },
			refuse: true,
		},
		"parked update: it is about to come": {
			state: oneImage, then: annotation(kruise.InPlaceUpdateGraceKey, "{}"), refuse: true,
		},
		"anything else: it is no matter":         {state: oneImage, then: annotation("theirs", "x")},
		"first of all: it may be any annotation": {then: annotation("theirs", "x"), refuse: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(template(container("c1", "app:2")), "web-2")
			marked(corev1.ConditionFalse)(pod)
			if tc.state != "" {
				stateText(tc.state)(pod)
			}
			a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
			if err != nil {
				t.Fatal(err)
			}
			stored := pod.DeepCopy()
			tc.then(stored)
			if _, refused, err := apply(stored, a.Write); err != nil || (refused != nil) != tc.refuse {
				t.Errorf("refused: %v, %v", refused, err)
			}
		})
	}
}

// TestResize: the patch has what differs, and nothing else.
func TestResize(t *testing.T) {
	from := template(container("c1", "app:1", requests("cpu", "1", "memory", "1Gi"), limits("cpu", "2")),
		container("c2", "app:1"), container("c3", "app:1", requests("cpu", "1")))
	cases := map[string]struct {
		c    map[string]corev1.ResourceRequirements
		want string
	}{
		"both: limits and requests": {
			c: map[string]corev1.ResourceRequirements{"c1": {
				Limits: amounts("cpu", "4"), Requests: amounts("cpu", "3"),
			}},
			want: `[{"op":"add","path":"/spec/containers/0/resources/limits/cpu","value":"4"},{"op":"add","path":"/spec/containers/0/resources/requests/cpu","value":"3"}]`,
		},
		"only limits: the rest stays": {
			c:    map[string]corev1.ResourceRequirements{"c1": {Limits: amounts("cpu", "4")}},
			want: `[{"op":"add","path":"/spec/containers/0/resources/limits/cpu","value":"4"}]`,
		},
		"first amounts: there is no map to add to": {
			c:    map[string]corev1.ResourceRequirements{"c2": {Limits: amounts("cpu", "1", "memory", "1Gi")}},
			want: `[{"op":"add","path":"/spec/containers/1/resources/limits","value":{"cpu":"1","memory":"1Gi"}}]`,
		},
		"equal: nothing is sent for nothing": {
			c: map[string]corev1.ResourceRequirements{"c1": {Requests: amounts("cpu", "1000m")}},
		},
		"others: only cpu and memory can be resized": {
			c: map[string]corev1.ResourceRequirements{"c1": {Limits: amounts("nvidia.com/gpu", "1")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(from, "web-1")
			pod.UID = ""
			a, err := inplace.Next(inplace.Update{Pod: pod, Change: &inplace.Change{Resources: tc.c}, Revision: "web-2"},
				inplace.Policy{}, noon())
			if err != nil || a.Verdict != inplace.Write {
				t.Fatal(a, err)
			}
			got := ""
			if a.Write.Subresource == write.Resize {
				data, err := a.Write.Data()
				if err != nil {
					t.Fatal(err)
				}
				got = "[" + string(data[bytes.Index(data, []byte(`{"op":"add"`)):])
			}
			if got != tc.want {
				t.Errorf("want %s\ngot  %s", tc.want, got)
			}
		})
	}
}

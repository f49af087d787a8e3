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
		why    string
		state  string
		then   func(*corev1.Pod)
		refuse bool
	}{
		"another update": {
			why:    "it is under way",
			state:  oneImage,
			then:   stateText(strings.ReplaceAll(oneImage, "web-2", "web-3")),
			refuse: true,
		},
		"first update": {why: "it is under way", then: stateText(oneImage), refuse: true},
		"revision only": {
			why:    "another update is about to come",
			state:  oneImage,
			then:   func(p *corev1.Pod) { p.Labels[kruise.PodRevisionLabelKey] = "web-3" },
			refuse: true,
		},
		"parked update": {
			why: "it is about to come", state: oneImage, then: annotation(kruise.InPlaceUpdateGraceKey, "{}"), refuse: true,
		},
		"ready already": {why: "another writer did it", state: oneImage, then: marked(corev1.ConditionTrue), refuse: true},
		"anything else": {why: "it is no matter", state: oneImage, then: annotation("theirs", "x")},
		"first of all":  {why: "it may be any annotation", then: annotation("theirs", "x"), refuse: true},
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
				t.Errorf("%s: refused: %v, %v", tc.why, refused, err)
			}
		})
	}
}

// TestWrites counts them: an image is three, and what restarts nothing is one.
func TestWrites(t *testing.T) {
	from := template(container("c1", "app:1", requests("cpu", "1")))
	cases := map[string]struct {
		why   string
		to    func(*corev1.PodTemplateSpec)
		gate  bool
		rules inplace.Policy
		want  []string
	}{
		"image": {
			why: "out, change, back", to: image(0, "app:2"), gate: true, want: []string{"status", "", "status"},
		},
		"image, no gate": {why: "nothing could take the pod out", to: image(0, "app:2"), want: []string{""}},
		"label":          {why: "the pod stays in traffic", to: label("a", "1"), gate: true, want: []string{""}},
		"cpu": {
			why:  "the pod stays in traffic",
			to:   func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2") },
			gate: true,
			want: []string{"resize", ""},
		},
		"label, as ever": {
			why:   "the reference takes it out",
			to:    label("a", "1"),
			gate:  true,
			rules: inplace.Policy{Unready: inplace.UnreadyAlways},
			want:  []string{"status", "", "status"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from := from
			if !tc.gate {
				from = with(from, noGate)
			}
			pod, c := running(from, "web-1"), diff(t, from, with(from, tc.to))
			var writes []string
			for range 10 {
				a, err := inplace.Next(inplace.Update{Pod: pod, Change: c, Revision: "web-2"}, tc.rules, noon())
				if err != nil {
					t.Fatal(err)
				}
				if a.Verdict == inplace.Wait {
					restart(pod, 0)
					continue
				}
				if a.Verdict == inplace.Complete {
					break
				}
				pod = applied(t, pod, a)
				writes = append(writes, a.Write.Subresource)
			}
			if d := cmp.Diff(tc.want, writes); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, d)
			}
		})
	}
}

// TestResize: the patch has what differs, and nothing else.
func TestResize(t *testing.T) {
	from := template(container("c1", "app:1", requests("cpu", "1", "memory", "1Gi"), limits("cpu", "2")),
		container("c2", "app:1"), container("c3", "app:1", requests("cpu", "1")))
	cases := map[string]struct {
		why  string
		c    map[string]corev1.ResourceRequirements
		want string
	}{
		"both": {
			why: "limits and requests", c: map[string]corev1.ResourceRequirements{"c1": {
				Limits: amounts("cpu", "4"), Requests: amounts("cpu", "3"),
			}},
			want: `[{"op":"add","path":"/spec/containers/0/resources/limits/cpu","value":"4"},{"op":"add","path":"/spec/containers/0/resources/requests/cpu","value":"3"}]`,
		},
		"only limits": {
			why:  "the rest stays",
			c:    map[string]corev1.ResourceRequirements{"c1": {Limits: amounts("cpu", "4")}},
			want: `[{"op":"add","path":"/spec/containers/0/resources/limits/cpu","value":"4"}]`,
		},
		"only requests": {
			why:  "the rest stays",
			c:    map[string]corev1.ResourceRequirements{"c1": {Requests: amounts("memory", "2Gi")}},
			want: `[{"op":"add","path":"/spec/containers/0/resources/requests/memory","value":"2Gi"}]`,
		},
		"first amounts": {
			why:  "there is no map to add to",
			c:    map[string]corev1.ResourceRequirements{"c2": {Limits: amounts("cpu", "1", "memory", "1Gi")}},
			want: `[{"op":"add","path":"/spec/containers/1/resources/limits","value":{"cpu":"1","memory":"1Gi"}}]`,
		},
		"one of two": {
			why: "the other has it already",
			c: map[string]corev1.ResourceRequirements{
				"c1": {Requests: amounts("cpu", "1")}, "c3": {Requests: amounts("cpu", "2")},
			},
			want: `[{"op":"add","path":"/spec/containers/2/resources/requests/cpu","value":"2"}]`,
		},
		"equal": {
			why: "nothing is sent for nothing",
			c:   map[string]corev1.ResourceRequirements{"c1": {Requests: amounts("cpu", "1000m")}},
		},
		"of an unknown container": {
			why: "the pod has no such container",
			c:   map[string]corev1.ResourceRequirements{"c9": {Requests: amounts("cpu", "1")}},
		},
		"others": {
			why: "only cpu and memory can be resized",
			c:   map[string]corev1.ResourceRequirements{"c1": {Limits: amounts("nvidia.com/gpu", "1")}},
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
				t.Errorf("%s:\nwant %s\ngot  %s", tc.why, tc.want, got)
			}
		})
	}
}

// A new pod is made ready once its kubelet has reported, not while that is adding the first conditions.
func TestStepLeavesANewPodToItsKubelet(t *testing.T) {
	pod := running(typical("1"), "web-1")
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
	}
	if action, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon()); err != nil ||
		action.Verdict != inplace.Wait || action.After <= 0 || action.Notes[0].Code != inplace.NoteNotStarted {
		t.Errorf("before the first report: %v, %v", action, err)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.ContainersReady, Status: corev1.ConditionFalse,
	})
	if action, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon()); err != nil ||
		action.Verdict != inplace.Write {
		t.Errorf("after the first report: %v, %v", action.Verdict, err)
	}
}

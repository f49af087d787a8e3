package podprobe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

func stateOf(name string, state v1alpha1.ProbeState, message string) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name:               name,
		State:              state,
		Message:            message,
		LastProbeTime:      metav1.NewTime(time.Unix(1_800_000_000, 0).UTC()),
		LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0).UTC()),
	}
}

// marked applies the write of a marking as an API server does.
func marked(t *testing.T, pod *corev1.Pod, m podprobe.Marking) *corev1.Pod {
	t.Helper()
	w := m.Write()
	if w == nil {
		return pod
	}
	patch, err := w.Data()
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	is := &corev1.Pod{}
	if err := json.Unmarshal(after, is); err != nil {
		t.Fatal(err)
	}
	return is
}

// shown is what a marker can change of a pod.
func shown(pod *corev1.Pod) string {
	var parts []string
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodInitialized {
			parts = append(parts, fmt.Sprintf("%s=%s(%s)", c.Type, c.Status, c.Message))
		}
	}
	slices.Sort(parts)
	for i, kind := range []map[string]string{pod.Labels, pod.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(kind)) {
			parts = append(parts, []string{"", "@"}[i]+key+":"+kind[key])
		}
	}
	return strings.Join(parts, " ")
}

func TestMark(t *testing.T) {
	lone, both := execOf("a", "true"), execOf("a", "true")
	lone.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{policyOf("Succeeded", "cost", "10")}
	both.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		policyOf("Succeeded", "cost", "10"), policyOf("Failed", "cost", "-10"),
	}
	reserved := execOf("c", "true")
	reserved.PodConditionType = "Ready"
	cases := map[string]struct {
		why    string
		probes []v1alpha1.PodContainerProbe
		states [][]v1alpha1.ContainerProbeState // one report after the other
		want   []string
	}{
		"a lone policy": {
			"its keys come and go with the state, acceptance 7",
			[]v1alpha1.PodContainerProbe{lone},
			[][]v1alpha1.ContainerProbeState{{stateOf("m#a", "Succeeded", "ok")}, {stateOf("m#a", "Failed", "no")}},
			[]string{"example.com/a=True(ok) cost:10 @cost:10", "example.com/a=False(no)"},
		},
		"unknown": {
			why:    "what is not known yet writes nothing new, revokes True, and leaves labels",
			probes: []v1alpha1.PodContainerProbe{both},
			states: [][]v1alpha1.ContainerProbeState{
				{stateOf("m#a", "Unknown", "")},
				{stateOf("m#a", "Succeeded", "")},
				{stateOf("m#a", "Unknown", "")},
				{stateOf("m#a", "Failed", "")},
				{stateOf("m#a", "Unknown", "")},
			},
			want: []string{
				"", "example.com/a=True() cost:10 @cost:10", "example.com/a=Unknown() cost:10 @cost:10",
				"example.com/a=False() cost:-10 @cost:-10", "example.com/a=False() cost:-10 @cost:-10",
			},
		},
		"a reserved condition": {
			"the kubelet owns it",
			[]v1alpha1.PodContainerProbe{reserved},
			[][]v1alpha1.ContainerProbeState{{stateOf("m#c", "Succeeded", "")}},
			[]string{""},
		},
		"malformed reports": {
			why:    "names without a marker, unknown markers, probes and states are left out",
			probes: []v1alpha1.PodContainerProbe{lone},
			states: [][]v1alpha1.ContainerProbeState{{
				stateOf("", "Succeeded", ""), stateOf("a", "Failed", ""), stateOf("x#a", "Failed", ""),
				stateOf("m#x", "Failed", ""), stateOf("m#a", "", ""), stateOf("m#a", "Odd", ""),
			}},
			want: []string{""},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod, markers := podOf("shop", "web-0", nil), []*v1alpha1.PodProbeMarker{markerOf("shop", "m", "web", c.probes...)}
			for i, states := range c.states {
				pod = marked(t, pod, podprobe.Mark(pod, podprobe.Outcomes(states, markers)))
				if got := shown(pod); got != c.want[i] {
					t.Errorf("%s: after report %d\ngot  %s\nwant %s", c.why, i, got, c.want[i])
				}
				if again := podprobe.Mark(pod, podprobe.Outcomes(states, markers)); again.Write() != nil {
					t.Errorf("after report %d there is more to write: %+v", i, again)
				}
			}
		})
	}
}

// The patch has what changes alone, and tests the UID.
func TestMarkWrite(t *testing.T) {
	pod := podOf("shop", "web-0", map[string]string{"app": "web", "cost": "1"})
	p := execOf("a", "true")
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: "Succeeded", Labels: map[string]string{"app": "web", "idle": "yes"}}, {
			State: "Failed", Labels: map[string]string{"cost": "2"},
		},
	}
	m := podprobe.Mark(pod, podprobe.Outcomes([]v1alpha1.ContainerProbeState{stateOf("m#a", "Succeeded", "ok")},
		[]*v1alpha1.PodProbeMarker{markerOf("shop", "m", "web", p)}))
	got, err := m.Write().Data()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"labels":{"cost":null,"idle":"yes"},"uid":"uid-shop-web-0"},"status":{"conditions":[{` +
		`"lastProbeTime":"2027-01-15T08:00:00Z","lastTransitionTime":"2023-11-14T22:13:20Z","message":"ok","reason":null,"status":"True","type":"example.com/a"}]}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// On a virtual node the conditions are the provider's, and only labels and annotations follow, acceptance 22.
func TestFromConditions(t *testing.T) {
	p := execOf("a", "true")
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{policyOf("Succeeded", "cost", "10"), policyOf("Failed", "cost", "-10")}
	plain := execOf("b", "true")
	markers := []*v1alpha1.PodProbeMarker{markerOf("shop", "m", "web", p, plain)}
	for status, want := range map[corev1.ConditionStatus]string{
		"True": "example.com/a=True() app:web cost:10 @cost:10", "False": "example.com/a=False() app:web cost:-10 @cost:-10",
		"Unknown": "example.com/a=Unknown() app:web", "": "app:web",
	} {
		pod := podOf("shop", "web-0", web())
		if status != "" {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/a", Status: status})
		}
		m := podprobe.Mark(pod, podprobe.FromConditions(pod, markers))
		if got := shown(marked(t, pod, m)); got != want || len(m.Conditions) > 0 {
			t.Errorf("condition %q: got %s, want %s", status, got, want)
		}
	}
}

// naive applies results one at a time to a pod, with the rules in the words of the specification.
func naive(pod *corev1.Pod, outcomes []podprobe.Outcome) *corev1.Pod {
	pod = pod.DeepCopy()
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Annotations = map[string]string{}
	written := map[string]bool{}
	for _, o := range outcomes {
		if o.State.State == "Unknown" {
			continue
		}
		if is := o.Probe.PodConditionType; is != "" && !written[is] {
			written[is] = true
			pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return string(c.Type) == is
			})
			status := corev1.ConditionFalse
			if o.State.State == "Succeeded" {
				status = corev1.ConditionTrue
			}
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodConditionType(is), Status: status, Message: o.State.Message,
			})
		}
		for _, set := range []bool{false, true} {
			for _, policy := range o.Probe.MarkerPolicy {
				for key, value := range policy.Labels {
					if matches := policy.State == o.State.State; matches && set {
						pod.Labels[key], pod.Annotations[key] = value, value
					} else if !matches && !set {
						delete(pod.Labels, key)
						delete(pod.Annotations, key)
					}
				}
			}
		}
	}
	return pod
}

func TestMarkAgainstOracle(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	pick := func(all ...string) string { return all[r.Intn(len(all))] }
	for range 2000 {
		var probes []v1alpha1.PodContainerProbe
		var states []v1alpha1.ContainerProbeState
		for i := range r.Intn(4) {
			p := execOf(fmt.Sprint(i), "true")
			p.PodConditionType = pick("", "x/1", "x/2")
			for _, state := range []v1alpha1.ProbeState{"Succeeded", "Failed"} {
				if r.Intn(2) == 0 {
					p.MarkerPolicy = append(p.MarkerPolicy, policyOf(state, pick("a", "b", "c"), pick("1", "2")))
				}
			}
			probes = append(probes, p)
			states = append(states,
				stateOf(fmt.Sprintf("m#%d", i), v1alpha1.ProbeState(pick("Succeeded", "Failed")), pick("", "text")))
		}
		labels := map[string]string{}
		for _, key := range []string{"a", "b", "c", "d"} {
			if r.Intn(2) == 0 {
				labels[key] = pick("1", "2")
			}
		}
		pod := podOf("shop", "web-0", labels)
		outcomes := podprobe.Outcomes(states, []*v1alpha1.PodProbeMarker{markerOf("shop", "m", "web", probes...)})
		got := marked(t, pod, podprobe.Mark(pod, outcomes))
		if diff := cmp.Diff(shown(naive(pod, outcomes)), shown(got)); diff != "" {
			t.Fatalf("seed %d (-oracle +got):\n%s", seed, diff)
		}
		if podprobe.Mark(got, outcomes).Write() != nil {
			t.Fatalf("seed %d: there is more to write", seed)
		}
	}
}

// Acceptance 20 and 21.
func TestStamp(t *testing.T) {
	pod := podOf("shop", "", web())
	pod.Spec.NodeName = ""
	onEnvoy := execOf("healthy-2", "true")
	onEnvoy.ContainerName, onEnvoy.PodConditionType = "envoy", "example.com/healthy"
	plain, restartable := execOf("init", "true"), execOf("init", "true")
	plain.ContainerName, restartable.ContainerName = "init-1", "init-2"
	restartable.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{policyOf("Failed", "a", "b")}
	got, err := podprobe.Stamp(pod, []*v1alpha1.PodProbeMarker{
		markerOf("shop", "init", "web", plain, restartable),
		markerOf("shop", "healthy", "web", execOf("healthy", "true"), onEnvoy), markerOf("shop", "other", "db", execOf("x")),
	})
	want := map[string]string{
		"kruise.io/podprobe": `[{"name":"healthy","containerName":"main","probe":{"exec":{"command":["true"]}},"podConditionType":"example.com/healthy"},` +
			`{"name":"init","containerName":"init-2","probe":{"exec":{"command":["true"]}},"podConditionType":"example.com/init"}]`,
		"kruise.io/podprobemarker-list": "healthy,init",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	silent := execOf("a", "true")
	silent.PodConditionType = ""
	if got, err := podprobe.Stamp(pod, []*v1alpha1.PodProbeMarker{
		markerOf("shop", "m", "web", silent),
	}); err != nil || got != nil {
		t.Errorf("probes without conditions stamp %v, %v", got, err)
	}
}

package pod

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
)

// A patch of any change makes of the pod what was meant, and leaves what this program does not know.
func TestDifference(t *testing.T) {
	for seed := range uint64(600) {
		d := rand.New(rand.NewPCG(seed, 3))
		before := randomPod(d)
		after := before.DeepCopy()
		for range d.IntN(5) {
			change(d, after)
		}
		patch, err := difference(before, after)
		if err != nil {
			t.Fatal(err)
		}
		raw := encode(t, before)
		sent := strings.ReplaceAll(raw, `"image":"i"`, `"image":"i","unknown":{"x":1}`)
		if applied := apply(t, seed, sent, encode(t, patch)); strings.Count(applied, `"unknown"`) < kept(before, after) {
			t.Fatalf("seed %d: an unknown field is lost: %s by %s", seed, applied, encode(t, patch))
		}
		if diff := gocmp.Diff(encode(t, after), normal(t, apply(t, seed, raw, encode(t, patch)))); diff != "" {
			t.Fatalf("seed %d: %s: (-want +got):\n%s", seed, encode(t, patch), diff)
		}
		if gocmp.Equal(encode(t, before), encode(t, after)) && len(patch) > 0 {
			t.Fatalf("seed %d: nothing changed, and the patch is %s", seed, encode(t, patch))
		}
	}
}

// No change of a pod drops a field that the types lack, not even of a container that the patch replaces.
func TestDifferenceKeepsUnknownFields(t *testing.T) {
	for seed := range uint64(300) {
		d := rand.New(rand.NewPCG(seed, 5))
		before := randomPod(d)
		sent := strings.ReplaceAll(encode(t, before), `"image":"i"`, `"image":"i","newer":{"x":1}`)
		var values map[string]any
		if err := json.Unmarshal([]byte(sent), &values); err != nil {
			t.Fatal(err)
		}
		if err := revision.KeepUnknownFields(before, values); err != nil {
			t.Fatal(err)
		}
		after := before.DeepCopy()
		for range d.IntN(5) {
			change(d, after)
		}
		if kept := before.Annotations[revision.UnknownFieldsKey]; kept != "" { // no step drops an annotation
			after.Annotations = maps.Clone(after.Annotations)
			if after.Annotations == nil {
				after.Annotations = map[string]string{}
			}
			after.Annotations[revision.UnknownFieldsKey] = kept
		}
		patch, err := difference(before, after)
		if err != nil {
			t.Fatal(err)
		}
		applied := apply(t, seed, sent, encode(t, patch))
		want := 0
		for _, c := range before.Spec.Containers {
			if slices.ContainsFunc(after.Spec.Containers, func(a corev1.Container) bool { return a.Name == c.Name }) {
				want++
			}
		}
		if got := strings.Count(applied, `"newer":{"x":1}`); got != want || strings.Contains(applied, revision.UnknownFieldsKey) {
			t.Fatalf("seed %d: %d containers of %d have their field: %s by %s", seed, got, want, applied, encode(t, patch))
		}
	}
}

// FuzzDifference: an API server that applies the patch stores the pod that the steps have made, whatever it has lost.
func FuzzDifference(f *testing.F) {
	const full = `{"metadata":{"labels":{"x":"1","y/z":"2"},"annotations":{"a":"b"}},"spec":{"nodeSelector":{"a":"b"},"priority":0,"preemptionPolicy":"Never",` +
		`"runtimeClassName":"r","tolerations":[{"key":"a","tolerationSeconds":3}],"affinity":{"nodeAffinity":{}},"volumes":[{"name":"v"}],` +
		`"containers":[{"name":"a","env":[{"name":"A"}],"resources":{"limits":{"cpu":"1"}}},{"name":"b"}]}}`
	f.Add(full, `{"spec":{"priorityClassName":"high","containers":[{"name":"a"}]}}`)
	f.Add(`{}`, full)
	f.Add(full,
		`{"metadata":{"labels":{"y/z":"2"}},"spec":{"affinity":{},"tolerations":[{"key":"a"}],"containers":[{"name":"b"},{"name":"a","env":[{"name":"B"}]}]}}`)
	f.Fuzz(func(t *testing.T, from, to string) {
		before, after := &corev1.Pod{}, &corev1.Pod{}
		if json.Unmarshal([]byte(from), before) != nil || json.Unmarshal([]byte(to), after) != nil {
			t.Skip()
		}
		after.Name = cmp.Or(after.Name, before.Name) // no step removes a name
		patch, err := difference(before, after)
		if err != nil {
			t.Fatal(err)
		}
		got := normal(t, apply(t, 0, encode(t, before), encode(t, patch)))
		if want := normal(t, encode(t, after)); want != got {
			is, meant := &corev1.Pod{}, &corev1.Pod{}
			if json.Unmarshal([]byte(got), is) != nil || json.Unmarshal([]byte(want), meant) != nil ||
				!equality.Semantic.DeepEqual(is, meant) {
				t.Fatalf("%s is applied (-want +got):\n%s", encode(t, patch), gocmp.Diff(want, got))
			}
		}
	})
}

// kept are the containers that are as they were, but for their variables.
func kept(before, after *corev1.Pod) int {
	n := 0
	for _, b := range before.Spec.Containers {
		if slices.ContainsFunc(after.Spec.Containers, func(a corev1.Container) bool {
			return a.Name == b.Name && a.Image == b.Image
		}) {
			n++
		}
	}
	return n
}

func randomPod(d *rand.Rand) *corev1.Pod {
	p := &corev1.Pod{}
	if d.IntN(2) == 0 {
		p.Labels, p.Annotations = map[string]string{"a": "1"}, map[string]string{"x/y~z": "1", "b": "2"}
	}
	for i := range 1 + d.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "i"}
		for j := range d.IntN(3) {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", j), Value: "v"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if d.IntN(2) == 0 {
		p.Spec.NodeSelector = map[string]string{"n": "1", "m/o": "2"}
		p.Spec.Priority, p.Spec.PreemptionPolicy = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority)
		p.Spec.RuntimeClassName, p.Spec.SchedulerName = ptr.To("r"), "s"
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "a", TolerationSeconds: ptr.To[int64](3)}, {Key: "b"}}
	}
	for i := range d.IntN(3) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i)})
	}
	return p
}

// change is one of those that steps make, or might come to make. None takes a container away.
func change(d *rand.Rand, p *corev1.Pod) {
	name := fmt.Sprintf("new-%d", d.IntN(1000))
	all := p.Spec.Containers
	one := &all[d.IntN(len(all))]
	changes := []func(){
		func() { p.Annotations = map[string]string{"b": "3", "x/y~z": "1", name: ""} },
		func() { p.Annotations = map[string]string{"x/y~z": "4"} },
		func() { p.Labels = map[string]string{"a": "1", name: "v"} },
		func() { p.Name = name },
		func() {
			p.Spec.Containers = slices.Insert(all, d.IntN(len(all)+1), corev1.Container{Name: name, Image: "n"})
		},
		func() { p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name}) },
		func() { one.Env = append(one.Env, corev1.EnvVar{Name: name, Value: "v"}) },
		func() { one.Env = append([]corev1.EnvVar{{Name: name}}, one.Env...) },
		func() {
			if len(one.Env) > 0 {
				one.Env[0].Value = name
			}
		},
		func() { one.Env = nil },
		func() { *one = corev1.Container{Name: one.Name, Image: name} },
		func() { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name}) },
		func() { slices.Reverse(p.Spec.Volumes) },
		func() {
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "x"})
		},
		func() {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		},
		func() { p.Spec.PriorityClassName, p.Spec.ShareProcessNamespace = name, ptr.To(true) },
		func() { p.Spec.NodeSelector = map[string]string{"n": name} },
		func() { p.Spec.NodeSelector = nil },
		func() { delete(p.Spec.NodeSelector, "m/o") },
		func() { p.Spec.PriorityClassName, p.Spec.Priority, p.Spec.PreemptionPolicy = name, nil, nil },
		func() { p.Spec.RuntimeClassName, p.Spec.SchedulerName = nil, "" },
		func() { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} },
		func() { p.Spec.Affinity = nil },
		func() { p.Spec.Tolerations = nil },
		func() { p.Spec.Volumes = nil },
		func() { p.Labels, p.Annotations = nil, nil },
		func() {
			for i := range p.Spec.Tolerations {
				p.Spec.Tolerations[i].TolerationSeconds = nil
			}
		},
	}
	changes[d.IntN(len(changes))]()
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func apply(t *testing.T, seed uint64, to, patch string) string {
	t.Helper()
	if patch == "null" {
		return to
	}
	p, err := jsonpatch.DecodePatch([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	applied, err := p.Apply([]byte(to))
	if err != nil {
		t.Fatalf("seed %d: %v: %s does not fit %s", seed, err, patch, to)
	}
	return string(applied)
}

// normal is a pod as it is encoded here.
func normal(t *testing.T, text string) string {
	t.Helper()
	p := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return encode(t, p)
}

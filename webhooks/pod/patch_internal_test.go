package pod

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
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
		if diff := cmp.Diff(encode(t, after), normal(t, apply(t, seed, raw, encode(t, patch)))); diff != "" {
			t.Fatalf("seed %d: %s: (-want +got):\n%s", seed, encode(t, patch), diff)
		}
		if cmp.Equal(encode(t, before), encode(t, after)) && len(patch) > 0 {
			t.Fatalf("seed %d: nothing changed, and the patch is %s", seed, encode(t, patch))
		}
	}
}

// kept are the containers that are as they were, but for their variables.
func kept(before, after *corev1.Pod) int {
	n := 0
	for _, b := range before.Spec.Containers {
		if slices.ContainsFunc(after.Spec.Containers, func(a corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image }) {
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

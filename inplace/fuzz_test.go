package inplace_test

import (
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// stored gives a value as an API server that stores it would; false where it would not take it.
func stored[T any](v *T) (*T, bool) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	again := new(T)
	return again, json.Unmarshal(data, again) == nil
}

func addPods(f *testing.F, add func(*corev1.Pod)) {
	f.Helper()
	for _, step := range []string{"1-created", "3-updated"} {
		data, err := os.ReadFile("../test/compat/testdata/recorded/" + step + "/pods.yaml")
		if err != nil {
			f.Fatal(err)
		}
		list := corev1.PodList{}
		if err := yaml.Unmarshal(data, &list); err != nil {
			f.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].Labels[kruise.PodRevisionLabelKey] != "" {
				add(&list.Items[i])
			}
		}
	}
}

func FuzzDiff(f *testing.F) {
	a := template(container("c1", "app:1", fed("FED", "metadata.labels['a']"), requests("cpu", "1"), limits("cpu", "2")),
		container("c2", "app:1", launch(2)))
	b := with(a, image(0, "app:2"), label("a", "1"), finalizers("x/y"), func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2")
	})
	c := with(a, func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers = []corev1.Container{container("i1", "init:1")}
	})
	for _, pair := range [][2]*corev1.PodTemplateSpec{
		{a, b},
		{b, a},
		{a, a},
		{sidecar("a"), sidecar("b")},
		{a, sidecar("a")},
		{c, a},
	} {
		for flags := range byte(9) {
			f.Add([]byte(jsonOf(pair[0])), []byte(jsonOf(pair[1])), flags)
		}
	}
	f.Fuzz(func(t *testing.T, x, y []byte, flags byte) {
		from, to := &corev1.PodTemplateSpec{}, &corev1.PodTemplateSpec{}
		if json.Unmarshal(x, from) != nil || json.Unmarshal(y, to) != nil {
			return
		}
		from, ok := stored(from)
		to, also := stored(to)
		if !ok || !also {
			return
		}
		o := inplace.Policy{
			Env: []inplace.Env{inplace.EnvRestart, inplace.EnvBlock, inplace.EnvIgnore}[flags%3],
			Resources: []inplace.Resources{
				inplace.ResourcesFixed, inplace.ResourcesReplaced, inplace.ResourcesAdded,
			}[flags/3%3],
		}
		before := jsonOf(from) + jsonOf(to)
		_, _ = inplace.Diff(from, to, o)
		if jsonOf(from)+jsonOf(to) != before {
			t.Error("a template is changed")
		}
		if same, err := inplace.Diff(from, from.DeepCopy(), o); err != nil || !same.Empty() {
			t.Errorf("a template and itself differ: %v, %v", same, err)
		}
	})
}

func FuzzState(f *testing.F) {
	addPods(f, func(p *corev1.Pod) { f.Add(p.Annotations[kruise.InPlaceUpdateStateKey]) })
	f.Add(oneImage)
	f.Add(recordedByUs)
	f.Add(resized)
	f.Add(`{"revision":"a","nextContainerImages":{"c":"d"},"preCheckBeforeNext":{"containersRequiredReady":["c"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		pod := running(template(container("c1", "app:1")), "web-1")
		stateText(text)(pod)
		state, err := inplace.StateOf(pod, nil)
		if known := state != nil || err != nil; known != (text != "") {
			t.Errorf("%q: got %v, %v", text, state, err)
		}
		_, _ = inplace.Completed(pod, everything())
	})
}

func FuzzGrace(f *testing.F) {
	f.Add(`{"revision":"web-2","containerImages":{"c1":"app:2"},"metaDataPatch":"eyJtZXRhZGF0YSI6eyIkc2V0RWxlbWVudE9yZGVyL2ZpbmFsaXplcnMiOltdLCJsYWJlbHMiOnsiYXBwIjpudWxsLCJuZXciOiJ4In19fQ==","graceSeconds":5}`,
		oneImage)
	f.Add(`{"revision":"web-2","containerRefMetadata":{"c1":{"labels":{"a":"b"}}},"containerResources":{"c1":{"limits":{"cpu":"1"}}},"updateEnvFromMetadata":true}`,
		resized)
	f.Add(`{"revision":"web-2","graceSeconds":-1,"oldTemplate":{},"newTemplate":null}`, "{}")
	f.Add(``, ``)
	f.Fuzz(func(t *testing.T, grace, state string) {
		pod := running(template(container("c1", "app:1", launch(1)), container("c2", "app:1")), "web-2")
		pod.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: grace, kruise.InPlaceUpdateStateKey: state}
		pod, ok := stored(pod)
		if !ok {
			return
		}
		_, err := inplace.GraceOf(pod, nil)
		a, stepErr := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
		if err != nil && stepErr == nil {
			t.Errorf("a grace that cannot be read is passed over: %v", err)
		}
		if stepErr == nil {
			sound(t, pod, a)
		}
	})
}

// sound holds for every action: a wait has a reason and a time, a write fits, and nothing is left undone.
func sound(t *testing.T, pod *corev1.Pod, a inplace.Action) {
	t.Helper()
	switch a.Verdict {
	case inplace.Wait:
		if a.After <= 0 || len(a.Notes) == 0 || a.Notes[0].Code == "" || a.Notes[0].Text == "" {
			t.Errorf("a wait without reason or time: %v", a)
		}
	case inplace.Write:
		if _, refused, err := apply(pod, a.Write); refused != nil || err != nil {
			t.Errorf("refused %v, %v", refused, err)
		}
	case inplace.Recreate:
		if len(a.Notes) == 0 {
			t.Error("given up without a reason")
		}
	case inplace.Complete:
		done, n := inplace.Completed(pod, inplace.Policy{})
		if !done || pod.DeletionTimestamp != nil {
			t.Errorf("complete, but an update is under way: %v", n)
		}
	case inplace.Ignore:
		if finished := pod.Status.Phase == corev1.PodFailed ||
			pod.Status.Phase == corev1.PodSucceeded; !finished && pod.DeletionTimestamp == nil {
			t.Error("ignored, but the pod runs")
		}
	default:
		t.Errorf("unknown verdict %q", a.Verdict)
	}
}

func FuzzSameImage(f *testing.F) {
	for _, s := range []string{
		"", "nginx", "docker.io/library/nginx:latest", "localhost:5000/a/b@sha256:abc", "docker-pullable://a@b", ":", "/",
		"@", "A/b:c",
	} {
		f.Add(s, "nginx:latest")
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !inplace.SameImage(a, a) || inplace.SameImage(a, b) != inplace.SameImage(b, a) {
			t.Errorf("%q, %q", a, b)
		}
	})
}

func FuzzRuntime(f *testing.F) {
	addPods(f, func(p *corev1.Pod) { f.Add(p.Annotations[kruise.RuntimeContainerMetaKey]) })
	f.Add(`{"containers":[{"name":"c1","containerID":"containerd://c1-0","hashes":{"plainHash":1}}]}`)
	f.Add(`{"containers":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		pod := running(template(container("c1", "app:1")), "web-2")
		pod.Annotations = map[string]string{
			kruise.RuntimeContainerMetaKey: text,
			kruise.InPlaceUpdateStateKey:   `{"lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"}},"updateEnvFromMetadata":true}`,
		}
		pod.Status.ContainerStatuses[0].Image = "other"
		a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
		if err != nil {
			t.Fatal(err)
		}
		sound(t, pod, a)
	})
}

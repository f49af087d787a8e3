package sidecar_test

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

// FuzzAnnotations injects into a pod that says anything in its annotations.
func FuzzAnnotations(f *testing.F) {
	f.Add(`{"b":2}`, `{"a":1}`, `{"s":"legacy"}`, `{"x":"x-2"}`)
	f.Add(`[1]`, `{"a":{"b":null}}`, `{"t":{"hash":"h","sidecarList":null}}`, `null`)
	f.Add(``, `{"a":null}`, `null`, `{}`)
	f.Add(`{"a":1e400}`, ` "x" `, `{"s":null}`, ``)
	f.Add(`{} {}`, `{`, `[]`, `[]`)
	f.Fuzz(func(t *testing.T, was, patch, hashes, working string) {
		pod := podOf(own("main"))
		pod.Annotations = pairs("k", was, kruise.SidecarSetHashKey, hashes,
			kruise.SidecarSetWorkingHotUpgradeContainerKey, working)
		sets := parse(sidecarSet("s", of(container("x", hot("empty"))), patches(mergeJSON, "k", patch)))
		got, err := sidecar.Inject(pod, sets, at())
		if err != nil {
			if was == "" && (hashes == "" || json.Valid([]byte(hashes))) && working == "" &&
				!strings.Contains(err.Error(), "sidecarset-hash") {
				t.Errorf("there is nothing to refuse: %v", err)
			}
			return
		}
		if got.Pod == nil {
			t.Fatal("it got nothing")
		}
		for _, key := range []string{
			kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetWorkingHotUpgradeContainerKey,
		} {
			if !json.Valid([]byte(got.Pod.Annotations[key])) {
				t.Errorf("%s is no JSON: %s", key, got.Pod.Annotations[key])
			}
		}
		if is := got.Pod.Annotations["k"]; was != "" && was != patch && !json.Valid([]byte(is)) {
			t.Errorf("%s merged into %s is no JSON: %s", patch, was, is)
		}
		if strings.Contains(patch, "null") {
			return // what it removes here is not yet removed where there was no value
		}
		again, err := sidecar.Inject(got.Pod, sets, at())
		if was == "" && err != nil {
			return // what is written as it is need not be JSON
		}
		if err != nil || again.Pod != nil {
			t.Errorf("it is injected again: %v, %v", err, again.Pod)
		}
	})
}

// FuzzInject draws a pod and sets of any seed.
func FuzzInject(f *testing.F) {
	for _, s := range []int64{-1, 0, 1 << 20, 1 << 40} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		if problem, _, _ := laws(&random{rand.New(rand.NewSource(seed))}); problem != "" {
			t.Error(problem)
		}
	})
}

// FuzzAnything injects whatever can be decoded into whatever can be decoded: it becomes a pod or an error, and nothing
// that is given is changed.
func FuzzAnything(f *testing.F) {
	f.Add(`{"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/a","subPathExpr":"$("}]},{"name":"a"}]}}`,
		`{"spec":{"selector":{},"containers":[{"name":"a","shareVolumePolicy":{"type":"enabled"}},{}],"patchPodMetadata":[{}]}}`)
	f.Add(`{"metadata":{"labels":{"a":"b"},"annotations":{"kruise.io/sidecarset-hash":"{}"}}}`,
		`{"spec":{"selector":{"matchLabels":{"a":"b"}},"namespaceSelector":{},"initContainers":[{"restartPolicy":"Always","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"},"resourcesPolicy":{"targetContainersMode":"max"},"transferEnv":[{"sourceContainerNameFrom":{}}]}]}}`)
	f.Add(`{}`,
		`{"spec":{"injectionStrategy":{"revision":{"customVersion":"x","policy":"Partial"}},"updateStrategy":{"selector":{},"partition":"-9%"}}}`)
	f.Fuzz(func(t *testing.T, podText, setText string) {
		pod, set := &corev1.Pod{}, &v1beta1.SidecarSet{}
		if json.Unmarshal([]byte(podText), pod) != nil || json.Unmarshal([]byte(setText), set) != nil {
			t.Skip()
		}
		wasPod, wasSet := pod.DeepCopy(), set.DeepCopy()
		read, _ := sidecar.Parse(set)
		selection, err := sidecar.Select(pod, &corev1.Namespace{}, []*sidecar.Set{read})
		if err == nil && len(selection.Sets) > 1 {
			t.Errorf("one set is selected %d times", len(selection.Sets))
		}
		former := revisionOf(set.Name, "r", 1, "x", setText)
		resolved, err := sidecar.Resolve(read, pod, []*appsv1.ControllerRevision{former}, 7)
		if err != nil {
			resolved = read
		}
		injection, err := sidecar.Inject(pod, []*sidecar.Set{resolved}, at())
		if err != nil && injection.Pod != nil {
			t.Error("there is half an injection")
		}
		sameAs(t, "the pod", wasPod, pod)
		sameAs(t, "the set", wasSet, set)
	})
}

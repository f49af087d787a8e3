package inplace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestOddPods decides for pods that are filled with anything, and that know of updates which fit them in part.
func TestOddPods(t *testing.T) {
	r := newRand(t)
	verdicts := map[inplace.Verdict]int{}
	for range 1_000 / fewer() {
		pod := oddPod(t, r)
		rules := inplace.Policy{
			Unready: oneOf(r, inplace.UnreadyOnRestart, inplace.UnreadyAlways, "Odd"),
			Keys: oneOf(r, nil, &kruise.Keys{Revision: "own/label~"}, &kruise.Keys{
				InPlaceState: "own/state", InPlaceReady: "own/ready", Older: []kruise.Keys{{}, {InPlaceGrace: "older/grace"}},
			}),
		}
		before := jsonOf(pod)
		if a, err := inplace.Next(inplace.Update{Pod: pod}, rules, noon()); err == nil {
			verdicts[a.Verdict]++
			sound(t, pod, a)
		}
		u := inplace.Update{
			Pod: pod, Change: oddChange(r, pod), Revision: "r", GraceSeconds: oneOf(r, int32(0), 7, -7, 1<<30),
		}
		wanted := jsonOf(u.Change)
		for i := range 20 {
			a, err := inplace.Next(u, rules, noon())
			if err != nil {
				break
			}
			verdicts[a.Verdict]++
			if i > 8 && a.Verdict == inplace.Write {
				t.Errorf("it is written again and again")
			}
			if sound(t, u.Pod, a); t.Failed() || a.Verdict != inplace.Write {
				break
			}
			u.Pod, _, _ = apply(u.Pod, a.Write)
		}
		if jsonOf(pod) != before || jsonOf(u.Change) != wanted {
			t.Error("an input is changed")
		}
		if t.Failed() {
			t.Fatalf("rules %+v, change %s\n%s\nnow %s", rules, wanted, before, encoded(t, u.Pod))
		}
	}
	t.Log(verdicts)
	for _, v := range []inplace.Verdict{inplace.Write, inplace.Wait, inplace.Complete} {
		if verdicts[v] == 0 {
			t.Errorf("no pod was told to %s", v)
		}
	}
}

// oddPod is filled with anything, and with what looks like updates that are under way.
func oddPod(t *testing.T, r *rand.Rand) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	filler := randfill.NewWithSeed(r.Int64()).NilChance(0.5).NumElements(1, 3).MaxDepth(7).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = *resource.NewMilliQuantity(r.Int64N(5000), resource.DecimalSI)
		},
		func(s *metav1.Time, _ randfill.Continue) { *s = metav1.Unix(noon().Unix()-r.Int64N(100), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.Raw = []byte("{}") },
	)
	filler.Fill(pod)
	oddities(r, pod)
	pod, ok := stored(pod)
	if !ok {
		t.Fatal("no pod")
	}
	return pod
}

// names are containers of a pod, and one that it has not.
func names(pod *corev1.Pod) []string {
	all := []string{"no-container"}
	for _, c := range pod.Spec.Containers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	return all
}

// oddities are conditions, statuses and annotations that have to do with updates.
func oddities(r *rand.Rand, pod *corev1.Pod) {
	if r.IntN(8) > 0 {
		pod.DeletionTimestamp = nil
	}
	pod.Status.Phase = oneOf(r, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending,
		corev1.PodFailed, "Odd")
	if r.IntN(2) == 0 {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{
			ConditionType: kruise.InPlaceUpdateReady,
		})
	}
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].Type = oneOf(r, kruise.InPlaceUpdateReady, corev1.PodReady, corev1.ContainersReady,
			corev1.PodResizePending)
		pod.Status.Conditions[i].Status = oneOf(r, corev1.ConditionTrue, corev1.ConditionFalse, "Odd")
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Name = oneOf(r, names(pod)...)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	name := func() string { return jsonOf(oneOf(r, names(pod)...)) }
	if r.IntN(3) > 0 {
		pod.Annotations[oneOf(r, kruise.InPlaceUpdateStateKey, kruise.InPlaceUpdateStateKey,
			kruise.InPlaceUpdateStateKeyOld)] = oneOf(
			r, "", "{}", "null", "{", `{"revision":"a","updateTimestamp":"2026-11-21T11:59:59Z"}`,
			`{"updateTimestamp":"9999-11-21T11:59:59Z"}`,
			fmt.Sprintf(`{"lastContainerStatuses":{%s:{"imageID":"x"}},"updateResources":true,"containerBatchesRecord":[{"containers":[%s]},{"containers":null}]}`,
				name(), name()),
			fmt.Sprintf(`{"nextContainerImages":{%s:"new"},"nextContainerResources":{%s:{"limits":{"cpu":"7","odd":"1"}}},"preCheckBeforeNext":{}}`,
				name(), name()),
			fmt.Sprintf(`{"nextContainerRefMetadata":{%s:{"labels":{"a/b~c":"d"},"annotations":{"":"x"}}},"preCheckBeforeNext":{"containersRequiredReady":[%s]},"updateEnvFromMetadata":true}`,
				name(), name()),
		)
	}
	if r.IntN(3) == 0 {
		pod.Annotations[oneOf(r, kruise.InPlaceUpdateGraceKey, kruise.InPlaceUpdateGraceKeyOld)] = oneOf(
			r, "", "{}", "null", "{",
			`{"revision":"a","graceSeconds":5,"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsiYXBwIjpudWxsfX19"}`,
			fmt.Sprintf(`{"containerImages":{%s:"new"},"containerResources":{%s:{"requests":{"memory":"7"}}},"updateEnvFromMetadata":true,"graceSeconds":2147483647}`,
				name(), name()),
		)
	}
	if r.IntN(3) == 0 {
		pod.Annotations[kruise.RuntimeContainerMetaKey] = oneOf(r, "", "{}", `{"containers":[{}]}`)
	}
	if r.IntN(8) == 0 {
		pod.Annotations, pod.Labels = nil, nil
	}
	if r.IntN(8) == 0 {
		pod.Status.Conditions, pod.Status.ContainerStatuses = nil, nil
	}
}

func oddChange(r *rand.Rand, pod *corev1.Pod) *inplace.Change {
	c := &inplace.Change{}
	if r.IntN(2) == 0 {
		c.Images = images(oneOf(r, names(pod)...), "new")
	}
	if r.IntN(3) == 0 {
		c.Resources = map[string]corev1.ResourceRequirements{oneOf(r, names(pod)...): {
			Limits: amounts("cpu", "9"), Requests: amounts("memory", "9", "odd", "1"),
		}}
	}
	if r.IntN(3) == 0 {
		c.RefMetadata = map[string]metav1.ObjectMeta{oneOf(r, names(pod)...): {Labels: map[string]string{"x": "y"}}}
		c.Env = []string{"no-container"}
	}
	if r.IntN(3) == 0 {
		c.Metadata = inplace.Metadata{
			Labels:           map[string]*string{"x": nil, "/~": new(string)},
			Annotations:      map[string]*string{"x": nil, kruise.InPlaceUpdateGraceKey: new(string)},
			AddFinalizers:    []string{"a/b", "a/b"},
			RemoveFinalizers: pod.Finalizers,
		}
	}
	return c
}

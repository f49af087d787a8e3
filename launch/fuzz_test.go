package launch_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/launch"
)

func jsonOf(o any) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return text
}

// FuzzInject has any pod injected: nothing panics, a second pass does nothing, and what is injected starts by Step.
func FuzzInject(f *testing.F) {
	f.Add(jsonOf(asking("1", "-2")), "x7k2p")
	f.Add(jsonOf(annotated(newPod("a", "b"), ordered, "Ordered")), "")
	f.Add(
		[]byte(`{"metadata":{"generateName":"a"},"spec":{"containers":[{"env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"1"},{"name":"KRUISE_CONTAINER_BARRIER"}]},{}]}}`),
		"z")
	f.Fuzz(func(t *testing.T, text []byte, suffix string) {
		pod := &corev1.Pod{}
		if json.Unmarshal(text, pod) != nil {
			return
		}
		before := pod.DeepCopy()
		got, faults := launch.Inject(pod, launch.Options{Suffix: suffix})
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Fatalf("the input is changed: %s", diff)
		}
		if got.Pod == nil {
			return
		}
		if len(faults) > 0 {
			t.Fatal("a pod, and faults")
		}
		if again, faults := launch.Inject(got.Pod, launch.Options{Suffix: suffix}); again.Pod != nil || faults != nil {
			t.Fatalf("a second pass makes %v, %v", cmp.Diff(got.Pod, again.Pod), faults)
		}
		if n := len(launch.Pending(got.Pod, launch.Policy{})); n > len(got.Pod.Spec.Containers) {
			t.Fatalf("%d containers wait", n)
		}
	})
}

// FuzzNext has plans made for whatever an API server stores, and looks at what comes after the plan.
func FuzzNext(f *testing.F) {
	f.Add(jsonOf(five()), jsonOf(barrier("u1", "p_5")))
	f.Add(jsonOf(done(with(five(), blocked, "a"))), jsonOf(barrier("u0", "p_5")))
	f.Add(
		[]byte(`{"spec":{"containers":[{"env":[{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"configMapKeyRef":{"name":"-barrier","key":"p_"}}}]}]}}`),
		[]byte(`{}`))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		pod, b := &corev1.Pod{}, &corev1.ConfigMap{}
		if json.Unmarshal(x, pod) != nil || json.Unmarshal(y, b) != nil {
			return
		}
		in := launch.Input{Pod: pod, Barrier: b}
		launch.Concerns(pod, launch.Policy{Started: true})
		before := string(jsonOf(pod)) + string(jsonOf(b))
		plan := launch.Next(in)
		if string(jsonOf(pod))+string(jsonOf(b)) != before {
			t.Fatal("the input is changed")
		}
		after := b.DeepCopy()
		if plan.Create != nil {
			after = plan.Create
		}
		for _, k := range plan.Add {
			if after.Data == nil {
				after.Data = map[string]string{}
			}
			after.Data[k] = "true"
		}
		if plan.Complete {
			done(pod)
		}
		if next := launch.Next(launch.Input{Pod: pod, Barrier: after}); !next.Empty() {
			t.Fatalf("after %+v comes %+v", plan, next)
		}
	})
}

package finish_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar/finish"
)

func ExampleDecide() {
	pod := newPod(never, mainOf("main", ended(0)), sidecar("proxy", running(), killEnv))
	plan := finish.Decide(finish.Input{Pod: pod, Node: &corev1.Node{}, Now: time.Unix(0, 0)})
	fmt.Println(plan.Create.Name, "stops", plan.Create.Spec.Containers[0].Name)
	// Output: sidecar-termination-u1 stops proxy
}

func ExampleConcerns() {
	fmt.Println(finish.Concerns(newPod(never, mainOf("main", running()), sidecar("proxy", running(), killEnv))))
	fmt.Println(finish.Concerns(newPod(never, mainOf("main", ended(1)), sidecar("proxy", running(), killEnv))))
	// Output:
	// false
	// true
}

func ExampleRequestName() {
	fmt.Println(finish.RequestName("7d1a"))
	// Output: sidecar-termination-7d1a
}

func ExampleImagesPatch() {
	pod := newPod(never, sidecar("proxy", running(), imageEnv))
	patch, err := finish.ImagesPatch(pod, map[string]string{"proxy": "exit:1"})
	fmt.Println(string(patch), err)
	// Output: {"metadata":{"resourceVersion":"5","uid":"u1"},"spec":{"containers":[{"image":"exit:1","name":"proxy"}]}} <nil>
}

func ExampleStatusPatch() {
	pod := newPod(never)
	patch, err := finish.StatusPatch(pod, &finish.Status{Phase: corev1.PodFailed, Condition: corev1.PodCondition{Type: "SidecarTerminated", Status: "True"}})
	fmt.Println(string(patch), err)
	// Output: {"metadata":{"resourceVersion":"5","uid":"u1"},"status":{"conditions":[{"type":"SidecarTerminated","status":"True","lastProbeTime":null,"lastTransitionTime":null}],"phase":"Failed"}} <nil>
}

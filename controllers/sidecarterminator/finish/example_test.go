package finish_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
)

func ExampleNext() {
	pod := newPod(never, mainOf("main", ended(0)), sidecar("proxy", running(), killEnv))
	plan := finish.Next(finish.Input{Pod: pod, Node: &corev1.Node{}, Now: time.Unix(0, 0)})
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

func ExampleAction_Writes() {
	in := finish.Input{
		Pod: newPod(never, mainOf("main", ended(0)), sidecar("proxy", running(), imageEnv)), Node: virtualNode(),
	}
	for _, w := range finish.Next(in).Writes(in) {
		data, err := w.Data()
		fmt.Println(w.Verb, string(data), err)
	}
	// Output: Patch {"metadata":{"resourceVersion":"5","uid":"u1"},"spec":{"containers":[{"image":"exit:1","name":"proxy"}]}} <nil>
}

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
	for _, w := range plan.Writes {
		fmt.Println(w.Verb, w.Object.GetName())
	}
	fmt.Println(plan.Event)
	// Output:
	// Create sidecar-termination-u1
	// The others have finished: stopping sidecars proxy by ContainerRecreateRequest sidecar-termination-u1
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

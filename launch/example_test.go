package launch_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/launch"
)

func ExampleInject() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app"},
			{Name: "proxy", Env: []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: "10"}}},
		}},
	}
	injection, faults := launch.Inject(pod, launch.Options{Suffix: "x7k2p"})
	if len(faults) > 0 {
		fmt.Println(faults.ToAggregate())
		return
	}
	for _, c := range injection.Pod.Spec.Containers {
		waits := c.Env[len(c.Env)-1].ValueFrom.ConfigMapKeyRef
		fmt.Println(c.Name, "waits for", waits.Key, "of", waits.Name)
	}
	// Output:
	// app waits for p_0 of web-x7k2p-barrier
	// proxy waits for p_10 of web-x7k2p-barrier
}

func ExampleNext() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	for _, c := range []struct{ name, key string }{{"app", "p_0"}, {"proxy", "p_10"}} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: c.name, Env: []corev1.EnvVar{wait("web", c.key)},
		})
	}
	first := launch.Next(launch.Input{Pod: pod})
	fmt.Println("create", first.Create.Name, "with", first.Create.Data)

	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", Ready: true}}
	second := launch.Next(launch.Input{Pod: pod, Barrier: first.Create})
	fmt.Println("add", second.Add, "and mark the pod:", second.Complete)
	// Output:
	// create web-barrier with map[p_10:true]
	// add [p_0] and mark the pod: true
}

func ExamplePending() {
	pod := waiting("p_3", "p_5", "p_0")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Ready: true}}
	fmt.Println(launch.Pending(pod, launch.Policy{}))
	// Output: [0 5]
}

func ExampleConcerns() {
	pod := waiting("p_3", "p_5")
	fmt.Println(launch.Concerns(pod, launch.Policy{}))
	pod.Annotations = map[string]string{"apps.kruise.io/container-launch-priority-completed": "true"}
	fmt.Println(launch.Concerns(pod, launch.Policy{}))
	// Output:
	// true
	// false
}

func ExampleIncomplete() {
	pod := waiting("p_3", "p_5")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Ready: true}, {Name: "b", Ready: true}}
	fmt.Println(launch.Concerns(pod, launch.Policy{}), launch.Incomplete(pod, launch.Policy{}))
	// Output: false true
}

func ExampleAddPatch() {
	patch, err := launch.AddPatch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "b1"}}, []string{"p_0"})
	fmt.Println(string(patch), err)
	// Output: {"data":{"p_0":"true"},"metadata":{"uid":"b1"}} <nil>
}

func ExampleCompletePatch() {
	patch, err := launch.CompletePatch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}, launch.Policy{})
	fmt.Println(string(patch), err)
	// Output: {"metadata":{"annotations":{"apps.kruise.io/container-launch-priority-completed":"true"},"uid":"u1"}} <nil>
}

func ExampleBarrierName() {
	fmt.Println(launch.BarrierName("web-0"))
	// Output: web-0-barrier
}

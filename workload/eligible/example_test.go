package eligible_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

func ExampleCompile() {
	template := corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}
	rule := eligible.Compile(&template, eligible.Options{Daemon: true})

	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "ssd"}}}
	fmt.Println(rule.Check(&node).Run)

	node.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
	verdict := rule.Check(&node)
	fmt.Println(verdict.Run, verdict.Stay, verdict.Note(node.Name).Text)
	// Output:
	// true
	// false true the pod does not tolerate the taint maintenance:NoSchedule
}

func ExamplePin() {
	var pod corev1.Pod
	eligible.Pin(&pod.Spec, "n1")
	fmt.Println(pod.Spec.NodeName == "", eligible.NodeOf(&pod))
	// Output: true n1
}

func ExampleTolerate() {
	spec := corev1.PodSpec{HostNetwork: true}
	eligible.Tolerate(&spec, eligible.DaemonTolerations(&spec))
	fmt.Println(len(spec.Tolerations), spec.Tolerations[6].Key)
	// Output: 7 node.kubernetes.io/network-unavailable
}

func ExampleChanged() {
	before := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "7"}}
	after := before
	after.ResourceVersion = "8" // a heartbeat
	fmt.Println(eligible.Changed(&before, &after))
	// Output: false
}

package sizing_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

func ExampleParse() {
	// In the object: targetContainersMode: avg
	_, err := sizing.Parse(policy("avg", "max(cpu*50%, 50m)"))
	fmt.Println(err)
	// Output: targetContainersMode: "avg" is neither sum nor max
}

func ExampleCheck() {
	for _, fault := range sizing.Check(policy(sum, "max(cpu*50%, 50m)", "cpu*2")) {
		fmt.Println(fault.Field, fault.Err)
	}
	// Output: resourcesExpr.limits.memory at 0: expected a variable that has a value here, found cpu
}

func ExamplePolicy_Targets() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "log-agent"}}}}
	p, err := sizing.Parse(policy(sum, "cpu"))
	for _, target := range p.Targets(pod, []string{"log-agent"}) {
		fmt.Println(target.Name, err)
	}
	// Output: app <nil>
}

func ExamplePolicy_Size() {
	p, err := sizing.Parse(policy(sum, "max(cpu*50%, 50m)", "200Mi"))
	if err != nil {
		fmt.Println(err)
		return
	}
	sized, err := p.Size([]corev1.Container{
		container("app", list("600m", ""), nil), container("proxy", list("200m", "1Gi"), nil),
	})
	fmt.Println("cpu", sized.Resources.Limits.Cpu(), err)
	for _, note := range sized.Notes {
		fmt.Println(note.Object, note.Text)
	}
	// Output:
	// cpu 400m <nil>
	// limits.memory left out, as container "app" has no such limit
}

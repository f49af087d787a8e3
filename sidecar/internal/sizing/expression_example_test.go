package sizing_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

func ExampleEvaluate() {
	for _, memory := range []string{"1000Mi", "300Mi"} {
		q, err := sizing.Evaluate("max(memory*20% + 100Mi, 200Mi)", corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse(memory),
		})
		fmt.Println(q.String(), err)
	}
	// Output:
	// 300Mi <nil>
	// 200Mi <nil>
}

func ExampleCheckExpression() {
	for _, text := range []string{"cpu-2", "memory*50%", "-cpu-1", "max(cpu*50%, 50m"} {
		fmt.Println(text, sizing.CheckExpression(text, corev1.ResourceCPU))
	}
	// Output:
	// cpu-2 <nil>
	// memory*50% at 0: expected a variable that has a value here, found memory
	// -cpu-1 expected a result of at least 0, found -2
	// max(cpu*50%, 50m at 16: expected ")", found the end
}

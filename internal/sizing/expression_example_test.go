package sizing_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/internal/sizing"
)

func ExampleParseExpression() {
	_, err := sizing.ParseExpression("max(cpu*50%, 50m")
	var fault *sizing.ExpressionError
	if errors.As(err, &fault) {
		fmt.Println(fault.Reason, err)
	}
	// Output:
	// Syntax at 16: expected ")", found the end
}

func ExampleExpression_Evaluate() {
	e, err := sizing.ParseExpression("max(memory*20% + 100Mi, 200Mi)")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, memory := range []string{"1000Mi", "300Mi"} {
		q, err := e.Evaluate(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)})
		fmt.Println(q.String(), err)
	}
	// Output:
	// 300Mi <nil>
	// 200Mi <nil>
}

func ExampleExpression_Check() {
	for _, text := range []string{"cpu-2", "memory*50%", "-cpu-1"} {
		e, err := sizing.ParseExpression(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(text, e.Check(corev1.ResourceCPU))
	}
	// Output:
	// cpu-2 <nil>
	// memory*50% at 0: expected a variable that has a value here, found memory
	// -cpu-1 at 4: expected a result of at least 0, found -2
}

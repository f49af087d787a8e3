package protection_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/protection"
)

func ExampleDecide() {
	kind, _ := protection.KindOf("apps", "Deployment")
	in := protection.Input{
		Kind: kind,
		Object: &metav1.ObjectMeta{
			Name: "web", Labels: map[string]string{"policy.kruise.io/delete-protection": "Cascading"},
		},
		Replicas: ptr.To[int32](3),
	}
	fmt.Println(protection.Decide(in).Message)
	in.Replicas = ptr.To[int32](0)
	fmt.Println(protection.Decide(in).Code)
	// Output:
	// forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading, replicas 3>0
	// NoDependents
}

func ExampleLabel() {
	kind, _ := protection.KindOf("", "Service")
	fmt.Println(protection.Label(kind, map[string]string{"policy.kruise.io/delete-protection": "Cascading"}).ToAggregate())
	// Output:
	// metadata.labels[policy.kruise.io/delete-protection]: Invalid value: "Cascading": must be Always, as other values do not protect objects of kind Service
}

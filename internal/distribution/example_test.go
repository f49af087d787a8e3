package distribution_test

import (
	"fmt"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// A distribution is rejected for all its faults at once.
func ExampleValidate() {
	d := &v1beta1.ResourceDistribution{}
	d.Spec.Resource.Raw = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"..."}}`)
	d.Spec.Targets.IncludedNamespaces.List = []v1beta1.ResourceDistributionNamespace{{Name: "shop"}}
	d.Spec.Targets.ExcludedNamespaces.List = []v1beta1.ResourceDistributionNamespace{{Name: "shop"}}
	for _, fault := range distribution.Validate(d, "") {
		fmt.Println(fault)
	}
	// Output:
	// spec.resource.data[tls.key]: Required value: is required by the type of the Secret
	// spec.targets: Invalid value: "shop": a namespace must not be both included and excluded
}

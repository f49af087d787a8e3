package distribution_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// One copy is missing, one is as it was written, one is in a namespace that is no target, and one name belongs to
// another owner.
func ExamplePlan() {
	resource, err := distribution.Read(
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"reader"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	targets, err := distribution.Select(v1beta1.ResourceDistributionTargets{
		NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	web := map[string]string{"team": "web"}
	pass := distribution.Plan(distribution.Input{
		Owner: distribution.Owner{Name: "registry", UID: "1"}, Resource: resource, Targets: targets,
		Namespaces: []distribution.Namespace{
			{Name: "cart", Labels: web}, {Name: "db"}, {Name: "shop", Labels: web}, {Name: "stock", Labels: web},
		},
		Copies: map[string]distribution.Copy{
			"shop":  {UID: "2", Version: "10", Controlled: true},
			"db":    {UID: "3", Version: "11", Controlled: true},
			"stock": {UID: "4", Version: "12"},
		},
		Known: map[string]distribution.Known{"shop": {UID: "2", Version: "10", Digest: resource.Digest}},
		Now:   at(0),
	})
	for _, step := range pass.Steps {
		fmt.Println(step.Action, step.Namespace)
	}
	for _, n := range pass.Notes {
		fmt.Println(n)
	}
	// Output:
	// Create cart
	// Delete db
	// ConflictOccurred stock: an object with the same kind and name exists, and this ResourceDistribution does not control it
}

// A distribution is rejected for all its faults at once.
func ExampleValidate() {
	d := &v1beta1.ResourceDistribution{}
	d.Spec.Resource.Raw = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"..."}}`)
	d.Spec.Targets.IncludedNamespaces.List = []v1beta1.ResourceDistributionNamespace{{Name: "shop"}}
	d.Spec.Targets.ExcludedNamespaces.List = []v1beta1.ResourceDistributionNamespace{{Name: "shop"}}
	for _, fault := range distribution.Validate(d) {
		fmt.Println(fault)
	}
	// Output:
	// spec.resource.data[tls.key]: Required value: is required by the type of the Secret
	// spec.targets: Invalid value: "shop": a namespace must not be both included and excluded
}

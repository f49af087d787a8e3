package scope

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Policy is what API servers do with a pod while no replica answers: Fail rejects it, Ignore admits it without the
// step.
type Policy = admissionregistrationv1.FailurePolicyType

const (
	fail   = admissionregistrationv1.Fail
	ignore = admissionregistrationv1.Ignore
)

// Source is one step of the pod webhook, and which pods it concerns. It has conditions, or a kind.
type Source struct {
	// Step is the name of the step.
	Step string
	// Conditions hold for the pods that the step concerns, in all namespaces.
	Conditions []Condition

	// Kind of the objects that the contribution depends on; empty if it depends on none.
	Kind schema.GroupVersionKind
	// selections are the pods that an object of the cluster selects.
	selections func(object *unstructured.Unstructured) []Selection
	// concerns returns the policy for the pods in the namespace of an object; empty for an object that concerns none.
	concerns func(object *unstructured.Unstructured) Policy
}

// Contribution is the pods that one step concerns.
type Contribution struct {
	// Selections by labels.
	Selections []Selection
	// Conditions on the pod, in all namespaces.
	Conditions []Condition
	// Closed and Open are namespaces whose pods are sent, sorted; Open admits them while no replica answers.
	Closed, Open []string
}

// Selection is the pods that one object of the cluster selects.
type Selection struct {
	// Object is its name.
	Object string
	// Pod selects by the labels of the pod. A nil or empty selector selects no pods.
	Pod *metav1.LabelSelector
	// Namespace selects by the labels of the namespace; nil or empty for all.
	Namespace *metav1.LabelSelector
	// Ignore admits the pods without the step while no replica answers.
	Ignore bool
}

// Condition is an expression in CEL that holds for the pods that a step concerns.
type Condition struct {
	// Expression must be an operand of ||, and must not fail whatever a pod lacks.
	Expression string
	// Ignore admits the pods without the step while no replica answers.
	Ignore bool
}

// Contribute returns the contribution for all objects of the kind. It skips objects that cannot be decoded, and changes
// none.
func (s Source) Contribute(objects []*unstructured.Unstructured) Contribution {
	c := Contribution{Conditions: s.Conditions}
	for _, object := range objects {
		if s.selections != nil {
			c.Selections = append(c.Selections, s.selections(object)...)
			continue
		}
		switch s.concerns(object) {
		case fail:
			c.Closed = append(c.Closed, object.GetNamespace())
		case ignore:
			c.Open = append(c.Open, object.GetNamespace())
		}
	}
	c.Closed, c.Open = sorted(c.Closed), sorted(c.Open)
	return c
}

func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

package scope

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Source computes the contribution of one step of the pod webhook.
type Source struct {
	// Step is the name of the step.
	Step string
	// Kind of the objects that the contribution depends on; empty if it depends on none.
	Kind schema.GroupVersionKind
	// Contribute returns the contribution for all objects of the kind. It skips objects that cannot be decoded, and
	// changes none.
	Contribute func(objects []*unstructured.Unstructured) Contribution
}

// Contribution is the pods that one step concerns.
type Contribution struct {
	// Selections by labels and namespace.
	Selections []Selection
	// Conditions on the pod, in all namespaces.
	Conditions []Condition
	// Lists are further conditions.
	Lists []List
}

// Selection is the pods that one object selects.
type Selection struct {
	// Object is its name.
	Object string
	// In is the namespace of the object, whose pods alone are selected; empty for an object of the cluster.
	In string
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

// List is a condition in CEL that compares one value with many, so that it may be long.
type List struct {
	// Before, Value and After frame the list: before, value in the list, after. The labels of the pod are l.
	Before, Value, After string
	// Of are the values, sorted. Each is a namespace, or begins with one and a slash, whose pods alone it selects. All
	// pods of these namespaces are selected where the list is too long.
	Of []string
	// Ignore admits the pods without the step while no replica answers.
	Ignore bool
}

// SourceOptions are the options of the steps that change which pods they concern.
type SourceOptions struct {
	// ReadinessGateForAll adds the gate KruisePodReady to every pod.
	ReadinessGateForAll bool
	// NoBudgets leaves pods without the stamp of their budget.
	NoBudgets bool
	// NoSpreads leaves pods without the subset of their WorkloadSpread.
	NoSpreads bool
	// EnhancedLiveness moves the liveness probes of pods that ask for it.
	EnhancedLiveness bool
	// Serverless writes the probes of PodProbeMarkers into new pods.
	Serverless bool
}

// Sources returns the source of every step. A new step adds a line; the order is that of the alternatives in an
// expression, so that a new line at the end leaves what is before it as it is.
func Sources(o SourceOptions) []Source {
	all := []Source{
		Sidecars(),
		Launch(),
		Readiness(o.ReadinessGateForAll),
	}
	if !o.NoBudgets {
		all = append(all, Budgets())
	}
	if !o.NoSpreads {
		all = append(all, Spreads())
	}
	all = append(all, States())
	if o.EnhancedLiveness {
		all = append(all, Liveness())
	}
	if o.Serverless {
		all = append(all, Probes())
	}
	return all
}

// conditional returns a source that depends on no object.
func conditional(step string, all ...Condition) Source {
	return Source{
		Step: step, Contribute: func([]*unstructured.Unstructured) Contribution { return Contribution{Conditions: all} },
	}
}

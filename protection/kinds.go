package protection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Dependents are objects that the value Cascading counts.
type Dependents string

const (
	// Replicas are those of spec.replicas.
	Replicas Dependents = "Replicas"
	// Pods are the pods of a namespace that have not ended and are not terminating.
	Pods Dependents = "Pods"
	// Claims are the claims of a namespace that are bound and not terminating.
	Claims Dependents = "Claims"
	// Instances are the custom resources of a definition that are not terminating.
	Instances Dependents = "Instances"
)

// Kind is a protected kind.
type Kind struct {
	Group, Kind, Resource string
	Versions              []string
	// Dependents are what Cascading counts, in this order. The value Cascading has no effect on a kind without any.
	Dependents []Dependents
}

// Kinds returns the table of the protected kinds.
func Kinds() []Kind {
	replicas, v1, both, older := []Dependents{Replicas}, []string{"v1"}, []string{"v1alpha1", "v1beta1"},
		[]string{"v1", "v1beta1"}
	return []Kind{
		{"", "Namespace", "namespaces", v1, []Dependents{Pods, Claims}},
		{"", "Service", "services", v1, nil},
		{"apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", older, []Dependents{Instances}},
		{"apps", "Deployment", "deployments", v1, replicas},
		{"apps", "ReplicaSet", "replicasets", v1, replicas},
		{"apps", "StatefulSet", "statefulsets", v1, replicas},
		{"apps.kruise.io", "CloneSet", "clonesets", both, replicas},
		{"apps.kruise.io", "StatefulSet", "statefulsets", both, replicas},
		{"apps.kruise.io", "UnitedDeployment", "uniteddeployments", both, replicas},
		{"networking.k8s.io", "Ingress", "ingresses", older, nil},
	}
}

// KindOf returns the row of a kind. It reports false for a kind that the label does not protect.
func KindOf(group, kind string) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Group == group && k.Kind == kind })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Workload reports whether Cascading judges a kind by its replicas.
func (k Kind) Workload() bool { return slices.Contains(k.Dependents, Replicas) }

// GarbageCollectors returns the users that delete the dependents of a deleted owner: with and without a service account
// for each controller.
func GarbageCollectors() []string {
	return []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"}
}

// followsOwner reports whether the garbage collector deletes a dependent of a workload: the deletion of the workload
// was judged.
func followsOwner(user string, o metav1.Object) bool {
	return slices.Contains(GarbageCollectors(), user) &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			group, _, _ := strings.Cut(r.APIVersion, "/")
			k, ok := KindOf(group, r.Kind)
			return ok && k.Workload() && r.Controller != nil && *r.Controller
		})
}

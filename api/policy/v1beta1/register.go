package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "policy.kruise.io", Version: "v1beta1"}

// SchemeGroupVersion is GroupVersion, under the name that generated clients use.
var SchemeGroupVersion = GroupVersion

// Resource returns the group and the name of a resource of this package.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&PodUnavailableBudget{}, &PodUnavailableBudgetList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

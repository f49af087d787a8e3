package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1beta1"}

// SchemeGroupVersion equals GroupVersion. client-gen requires this name.
var SchemeGroupVersion = GroupVersion

// Resource returns the group and the name of a resource of this package.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme adds the kinds of this package to a scheme. It never fails; the error makes it a function for
// runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&AdvancedCronJob{}, &AdvancedCronJobList{},
		&BroadcastJob{}, &BroadcastJobList{},
		&CloneSet{}, &CloneSetList{},
		&ContainerRecreateRequest{}, &ContainerRecreateRequestList{},
		&DaemonSet{}, &DaemonSetList{},
		&ImageListPullJob{}, &ImageListPullJobList{},
		&ImagePullJob{}, &ImagePullJobList{},
		&NodeImage{}, &NodeImageList{},
		&PersistentPodState{}, &PersistentPodStateList{},
		&ResourceDistribution{}, &ResourceDistributionList{},
		&SidecarSet{}, &SidecarSetList{},
		&StatefulSet{}, &StatefulSetList{},
		&UnitedDeployment{}, &UnitedDeploymentList{},
		&WorkloadSpread{}, &WorkloadSpreadList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

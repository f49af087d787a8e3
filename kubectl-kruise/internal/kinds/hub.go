package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
)

// older is an object of v1alpha1 that converts to v1beta1.
type older[A, B any] interface {
	*A
	ConvertTo(hub *B) error
}

// Read converts an object to a type of v1beta1 or of Kubernetes, whose version it has.
func Read[T any](o *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if _, ok := any(into).(*corev1.Pod); ok { // of which no template is made
		return into, nil
	}
	return into, revision.KeepUnknownFields(into, o.Object)
}

// ReadAll converts what a call has listed, and returns the error of the call.
func ReadAll[T any](items []unstructured.Unstructured, err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	all := make([]*T, len(items))
	for i := range items {
		if all[i], err = Read[T](&items[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// hub converts an object of either version to v1beta1.
func hub[A, B any, P older[A, B]](o *unstructured.Unstructured) (*B, error) {
	if o.GroupVersionKind().Version == v1beta1.GroupVersion.Version {
		return Read[B](o)
	}
	old, err := Read[A](o)
	if err != nil {
		return nil, err
	}
	into := new(B)
	if err := P(old).ConvertTo(into); err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return into, nil
}

// ReadCloneSet reads a CloneSet of either version.
func ReadCloneSet(o *unstructured.Unstructured) (*v1beta1.CloneSet, error) {
	return hub[v1alpha1.CloneSet, v1beta1.CloneSet](o)
}

// ReadStatefulSet reads a StatefulSet of apps.kruise.io of either version.
func ReadStatefulSet(o *unstructured.Unstructured) (*v1beta1.StatefulSet, error) {
	return hub[v1alpha1.StatefulSet, v1beta1.StatefulSet](o)
}

// ReadDaemonSet reads a DaemonSet of apps.kruise.io of either version.
func ReadDaemonSet(o *unstructured.Unstructured) (*v1beta1.DaemonSet, error) {
	return hub[v1alpha1.DaemonSet, v1beta1.DaemonSet](o)
}

// ReadUnitedDeployment reads a UnitedDeployment of either version.
func ReadUnitedDeployment(o *unstructured.Unstructured) (*v1beta1.UnitedDeployment, error) {
	return hub[v1alpha1.UnitedDeployment, v1beta1.UnitedDeployment](o)
}

// ReadBroadcastJob reads a BroadcastJob of either version.
func ReadBroadcastJob(o *unstructured.Unstructured) (*v1beta1.BroadcastJob, error) {
	return hub[v1alpha1.BroadcastJob, v1beta1.BroadcastJob](o)
}

// ReadAdvancedCronJob reads an AdvancedCronJob of either version.
func ReadAdvancedCronJob(o *unstructured.Unstructured) (*v1beta1.AdvancedCronJob, error) {
	return hub[v1alpha1.AdvancedCronJob, v1beta1.AdvancedCronJob](o)
}

// ReadSidecarSet reads a SidecarSet of either version.
func ReadSidecarSet(o *unstructured.Unstructured) (*v1beta1.SidecarSet, error) {
	return hub[v1alpha1.SidecarSet, v1beta1.SidecarSet](o)
}

// ReadImagePullJob reads an ImagePullJob of either version.
func ReadImagePullJob(o *unstructured.Unstructured) (*v1beta1.ImagePullJob, error) {
	return hub[v1alpha1.ImagePullJob, v1beta1.ImagePullJob](o)
}

// ReadNodeImage reads a NodeImage of either version.
func ReadNodeImage(o *unstructured.Unstructured) (*v1beta1.NodeImage, error) {
	return hub[v1alpha1.NodeImage, v1beta1.NodeImage](o)
}

// ReadBudget reads a PodUnavailableBudget of either version.
func ReadBudget(o *unstructured.Unstructured) (*policyv1beta1.PodUnavailableBudget, error) {
	return hub[policyv1alpha1.PodUnavailableBudget, policyv1beta1.PodUnavailableBudget](o)
}

// ReadContainerRecreateRequest reads a ContainerRecreateRequest of either version.
func ReadContainerRecreateRequest(o *unstructured.Unstructured) (*v1beta1.ContainerRecreateRequest, error) {
	return hub[v1alpha1.ContainerRecreateRequest, v1beta1.ContainerRecreateRequest](o)
}

// Write returns an object as the API server takes it in one of its served versions. Only for kinds whose spec is the
// same in all versions: jobs, pull jobs and requests.
func Write(kind schema.GroupVersionKind, o runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := revision.WithUnknownFields(o)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	written := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(written.Object, "metadata", "creationTimestamp")
	written.SetGroupVersionKind(kind)
	return written, nil
}

// WriteCloneSet returns a CloneSet as the API server takes it in one of its served versions.
func WriteCloneSet(kind schema.GroupVersionKind, set *v1beta1.CloneSet) (*unstructured.Unstructured, error) {
	if kind.Version == v1beta1.GroupVersion.Version {
		return Write(kind, set)
	}
	old := &v1alpha1.CloneSet{}
	if err := old.ConvertFrom(set); err != nil {
		return nil, fmt.Errorf("convert CloneSet %s: %w", set.Name, err)
	}
	return Write(kind, old)
}

// WriteStatefulSet returns a StatefulSet as the API server takes it in one of its served versions.
func WriteStatefulSet(kind schema.GroupVersionKind, set *v1beta1.StatefulSet) (*unstructured.Unstructured, error) {
	if kind.Version == v1beta1.GroupVersion.Version {
		return Write(kind, set)
	}
	old := &v1alpha1.StatefulSet{}
	if err := old.ConvertFrom(set); err != nil {
		return nil, fmt.Errorf("convert StatefulSet %s: %w", set.Name, err)
	}
	return Write(kind, old)
}

package validation

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const cloneSetTemplate = "cloneSetTemplate"

// Template is one of the templates of a UnitedDeployment, which has exactly one.
type Template struct {
	// Field is the name of the field.
	Field string
	// Kind is that of the workloads.
	Kind schema.GroupVersionKind

	Metadata *metav1.ObjectMeta
	Spec     any
	Pod      *corev1.PodTemplateSpec

	// replicas and partition are set where the template sets what the UnitedDeployment decides.
	replicas, partition bool
}

// Templates returns the templates that are set.
func Templates(t *appsv1beta1.SubsetTemplate) []Template {
	var all []Template
	if x := t.StatefulSetTemplate; x != nil {
		rolling := x.Spec.UpdateStrategy.RollingUpdate
		all = append(all, Template{
			"statefulSetTemplate", appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &x.ObjectMeta, &x.Spec,
			&x.Spec.Template, x.Spec.Replicas != nil, rolling != nil && rolling.Partition != nil,
		})
	}
	if x := t.AdvancedStatefulSetTemplate; x != nil {
		rolling := x.Spec.UpdateStrategy.RollingUpdate
		all = append(all, Template{
			"advancedStatefulSetTemplate", appsv1beta1.GroupVersion.WithKind("StatefulSet"), &x.ObjectMeta, &x.Spec,
			&x.Spec.Template, x.Spec.Replicas != nil, rolling != nil && rolling.Partition != nil,
		})
	}
	if x := t.CloneSetTemplate; x != nil { // stored objects may have replicas and a partition here, which have no effect
		all = append(all, Template{
			cloneSetTemplate, appsv1beta1.GroupVersion.WithKind("CloneSet"), &x.ObjectMeta, &x.Spec, &x.Spec.Template,
			false, false,
		})
	}
	if x := t.DeploymentTemplate; x != nil {
		all = append(all, Template{
			"deploymentTemplate", appsv1.SchemeGroupVersion.WithKind("Deployment"), &x.ObjectMeta, &x.Spec,
			&x.Spec.Template, x.Spec.Replicas != nil, false,
		})
	}
	return all
}

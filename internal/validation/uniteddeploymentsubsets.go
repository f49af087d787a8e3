package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/spread"
)

// checkSubsets validates terms, tolerations and patches.
func checkSubsets(u *appsv1beta1.UnitedDeployment, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i := range u.Spec.Topology.Subsets {
		s, here := &u.Spec.Topology.Subsets[i], at.Index(i)
		faults = append(faults, checkNodeTerm(&s.NodeSelectorTerm, here.Child("nodeSelectorTerm"))...)
		for j := range s.Tolerations {
			faults = append(faults, Toleration(&s.Tolerations[j], here.Child("tolerations").Index(j))...)
		}
		// Whether the patch applies to the template is known where it is applied: that takes the schema of pods, which is
		// large.
		if err := json.Unmarshal(s.Patch.Raw, &corev1.PodTemplateSpec{}); len(s.Patch.Raw) > 0 && err != nil {
			faults = append(faults, field.Invalid(here.Child("patch"), failure.BriefText(string(s.Patch.Raw)),
				fmt.Sprintf("must be a strategic merge patch of the pod template: %s", failure.BriefText(err.Error()))))
		}
	}
	return faults
}

func checkNodeTerm(term *corev1.NodeSelectorTerm, at *field.Path) field.ErrorList {
	selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*term}}
	if _, err := nodeaffinity.NewNodeSelector(selector); err != nil {
		return field.ErrorList{
			field.Invalid(at, failure.BriefText(fmt.Sprint(term)),
				"must be a valid node selector term: "+failure.BriefText(err.Error())),
		}
	}
	return nil
}

// checkSubsetNumbers validates shares and bounds. Package spread reads them in the same way.
func checkSubsetNumbers(spec *appsv1beta1.UnitedDeploymentSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	adaptive := spec.Topology.ScheduleStrategy.Type == appsv1beta1.AdaptiveUnitedDeploymentScheduleStrategyType
	shares, bounds, unlimited := 0, 0, 0
	in := spread.Input{Replicas: spec.Replicas}
	for i := range spec.Topology.Subsets {
		s, here := &spec.Topology.Subsets[i], at.Index(i)
		in.Subsets = append(in.Subsets, spread.Subset{
			Name: s.Name, Replicas: s.Replicas, MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas,
		})
		if s.Replicas != nil {
			shares++
			if adaptive {
				faults = append(faults, field.Forbidden(here.Child("replicas"), "must not be set with schedule type Adaptive"))
			}
		}
		if s.MinReplicas != nil || s.MaxReplicas != nil {
			bounds++
		}
		if s.MaxReplicas == nil {
			unlimited++
		}
	}
	switch {
	case len(faults) > 0 || len(in.Subsets) == 0:
	case shares > 0 && bounds > 0:
		faults = append(faults, field.Forbidden(at, "must have either replicas, or minReplicas and maxReplicas"))
	case bounds > 0 && unlimited == 0:
		faults = append(faults, field.Invalid(at, len(in.Subsets), "must have a subset without maxReplicas"))
	default:
		for _, n := range spread.Allocate(in).Notes {
			where := at
			if i := slices.IndexFunc(in.Subsets, func(s spread.Subset) bool { return s.Name == n.Object }); i >= 0 {
				member, _, _ := strings.Cut(n.Text, " ") // a note about a subset begins with the name of the field
				where = at.Index(i).Child(member)
			}
			faults = append(faults, field.Invalid(where, n.Object, n.Text))
		}
	}
	return faults
}

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

package sidecar

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

// CheckResources returns all faults of the resourcesPolicy of a container, for admission; at is its path. An invalid
// formula does no harm to pods that do not need it, so that Inject reports only those that a pod meets.
func CheckResources(policy *appsv1beta1.ResourcesPolicy, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, fault := range sizing.Check(policy) {
		faults = append(faults, field.Invalid(at.Child(fault.Field), field.OmitValueType{}, fault.Err.Error()))
	}
	return faults
}

// resources computes the resources of a container from those of the pod's own containers.
func (in *injector) resources(set *Set, p *part) (corev1.ResourceRequirements, error) {
	if p.fault != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("resourcesPolicy: %w", p.fault)
	}
	sized, err := p.policy.Size(p.policy.Targets(in.pod, in.declared))
	if errors.Is(err, ErrNoTarget) {
		return corev1.ResourceRequirements{}, fmt.Errorf("resourcesPolicy.targetContainersNameRegex %q: %w",
			p.ResourcesPolicy.TargetContainersNameRegex, err)
	}
	if err != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("resourcesPolicy: %w", err)
	}
	for _, n := range sized.Notes {
		in.note(n.Code, set, "container %s: %s: %s", p.Name, n.Object, n.Text)
	}
	return sized.Resources, nil
}

package sidecar

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

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

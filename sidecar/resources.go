package sidecar

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// resources computes those of a container from those of the pod's own.
func (in *injector) resources(p *appsv1beta1.ResourcesPolicy) (corev1.ResourceRequirements, error) {
	var got corev1.ResourceRequirements
	if in.o.Evaluate == nil {
		return got, ErrNoEvaluate
	}
	targets, err := in.targets(p.TargetContainersNameRegex)
	if err != nil {
		return got, err
	}
	sum, err := sumUp(p.TargetContainersMode)
	if err != nil {
		return got, err
	}
	limits := func(name corev1.ResourceName) (total resource.Quantity, limited bool) {
		for _, c := range targets {
			q, ok := c.Resources.Limits[name]
			if !ok {
				return resource.Quantity{}, false
			}
			sum(&total, q)
		}
		return total, true
	}
	requests := func(name corev1.ResourceName) (total resource.Quantity, limited bool) {
		for _, c := range targets {
			if q, ok := c.Resources.Requests[name]; ok {
				sum(&total, q)
			}
		}
		return total, true
	}
	if got.Limits, err = in.evaluate(p.ResourcesExpr.Limits, limits); err != nil {
		return got, fmt.Errorf("compute limits: %w", err)
	}
	if got.Requests, err = in.evaluate(p.ResourcesExpr.Requests, requests); err != nil {
		return got, fmt.Errorf("compute requests: %w", err)
	}
	return got, nil
}

// targets are the containers that keep running and that no set declares, where their names match. They must be some.
func (in *injector) targets(pattern string) ([]*corev1.Container, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("parse targetContainersNameRegex: %w", err)
	}
	var targets []*corev1.Container
	consider := func(c *corev1.Container) {
		if !in.declared[c.Name] && in.isOwn(c) && match.MatchString(c.Name) {
			targets = append(targets, c)
		}
	}
	for i := range in.pod.Spec.InitContainers {
		if c := &in.pod.Spec.InitContainers[i]; keepsRunning(c) {
			consider(c)
		}
	}
	for i := range in.pod.Spec.Containers {
		consider(&in.pod.Spec.Containers[i])
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("targetContainersNameRegex %q: %w", pattern, ErrNoTarget)
	}
	return targets, nil
}

// sumUp says how the resources of one more container come to a total that begins with nothing.
func sumUp(mode appsv1beta1.TargetContainersModeType) (func(total *resource.Quantity, q resource.Quantity), error) {
	switch mode {
	case appsv1beta1.TargetContainersModeSum:
		return func(total *resource.Quantity, q resource.Quantity) { total.Add(q) }, nil
	case appsv1beta1.TargetContainersModeMax:
		return func(total *resource.Quantity, q resource.Quantity) {
			if q.Cmp(*total) > 0 {
				*total = q.DeepCopy()
			}
		}, nil
	default:
		return nil, fmt.Errorf("targetContainersMode %q is neither sum nor max", mode)
	}
}

// evaluate computes the expressions that there are. Of what is not limited there is nothing to compute with, so the container
// is not limited either.
func (in *injector) evaluate(list *appsv1beta1.ResourceExprList, total func(corev1.ResourceName) (resource.Quantity, bool)) (corev1.ResourceList, error) {
	if list == nil {
		return nil, nil
	}
	var got corev1.ResourceList
	for _, e := range []struct {
		name corev1.ResourceName
		text string
	}{{corev1.ResourceCPU, list.CPU}, {corev1.ResourceMemory, list.Memory}} {
		if e.text == "" {
			continue
		}
		value, limited := total(e.name)
		if !limited {
			continue
		}
		variable := corev1.ResourceCPU
		if namesMemory(e.text) {
			variable = corev1.ResourceMemory
		}
		result, err := in.o.Evaluate(e.text, corev1.ResourceList{variable: value})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if got == nil {
			got = corev1.ResourceList{}
		}
		got[e.name] = result
	}
	return got, nil
}

// namesMemory says whether the text has the word memory.
func namesMemory(text string) bool {
	found, err := regexp.MatchString(`\bmemory\b`, text)
	return found && err == nil
}

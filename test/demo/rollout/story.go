// Package rollout plays one story with a CloneSet, a Deployment that asks for rollouts in place and a plain Deployment
// side by side, and measures it.
//
// All have the same pods, the same changes and the same budget: a fifth of the pods may be unavailable, and none are
// made beyond the wanted number. A Deployment has no partition.
package rollout

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Namespace of all that the story makes.
const Namespace = "demo"

// step is one change.
type step struct {
	title string
	// edit changes the template. It may find that there is nothing to change.
	edit func(*corev1.PodTemplateSpec)
	// partition of the CloneSet.
	partition *intstr.IntOrString
	// part of the summary that the step belongs to, and what the CloneSet is called there.
	part, row string
}

const (
	newImage    = "A new image"
	newVariable = "A new environment variable"
)

// story has the steps after the beginning.
func story() []step {
	image := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "web:2" }
	variable := func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	}
	return []step{
		{
			title: "A new image, with a partition of 50%", edit: image, partition: ptr.To(intstr.FromString("50%")),
			part: newImage, row: "CloneSet, first half",
		},
		{title: "The partition is lifted: the other half", edit: image, part: newImage, row: "CloneSet, the rest"},
		{
			title: "A new environment variable: no running container can get it", edit: variable,
			part: newVariable, row: "CloneSet",
		},
	}
}

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/scale"
)

// fleet is the resource that fleet.yaml defines.
type fleet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		scale.Limits
		Template corev1.PodTemplateSpec
	}
}

// What a pod remembers: the hash of its template, and the template itself.
const revisionLabel, templateKey = "controller-revision-hash", "example.com/template"

// pod is a new pod of the fleet.
func (f *fleet) pod(hash, template string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *f.Spec.Template.ObjectMeta.DeepCopy(), Spec: *f.Spec.Template.Spec.DeepCopy()}
	pod.GenerateName = f.Name + "-"
	pod.Labels = labels.Merge(pod.Labels, labels.Set{"fleet": f.Name, revisionLabel: hash})
	pod.Annotations = labels.Merge(pod.Annotations, labels.Set{templateKey: template})
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Fleet", Name: f.Name, UID: f.UID}}
	return pod
}

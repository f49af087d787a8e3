package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
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

// owned is the metadata of an object of the fleet.
func (f *fleet) owned() metav1.ObjectMeta {
	owner := metav1.NewControllerRef(f, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"})
	return metav1.ObjectMeta{Labels: map[string]string{"fleet": f.Name}, OwnerReferences: []metav1.OwnerReference{*owner}}
}

// pod is a new pod of a revision.
func (f *fleet) pod(revisionName string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: f.owned(), Spec: *f.Spec.Template.Spec.DeepCopy()}
	pod.GenerateName, pod.Annotations = f.Name+"-", f.Spec.Template.Annotations
	pod.Labels = labels.Merge(f.Spec.Template.Labels, labels.Merge(pod.Labels, labels.Set{kruise.PodRevisionLabelKey: revisionName}))
	inplace.EnsureReadinessGate(&pod.Spec)
	return pod
}

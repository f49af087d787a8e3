package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
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
	owner := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Fleet", Name: f.Name, UID: f.UID}
	return metav1.ObjectMeta{Labels: map[string]string{"fleet": f.Name}, OwnerReferences: []metav1.OwnerReference{owner}}
}

// revision is a new revision of the template.
func (f *fleet) revision(r *revision.Resolution, data []byte) *appsv1.ControllerRevision {
	stored := &appsv1.ControllerRevision{ObjectMeta: f.owned(), Revision: r.Number, Data: runtime.RawExtension{Raw: data}}
	stored.Name = r.Name
	return stored
}

// pod is a new pod of a revision.
func (f *fleet) pod(revisionName string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: f.owned(), Spec: *f.Spec.Template.Spec.DeepCopy()}
	pod.GenerateName, pod.Annotations = f.Name+"-", f.Spec.Template.Annotations
	pod.Labels = labels.Merge(f.Spec.Template.Labels, labels.Merge(pod.Labels, labels.Set{pub.PodRevisionLabelKey: revisionName}))
	inplace.EnsureReadinessGate(&pod.Spec)
	return pod
}

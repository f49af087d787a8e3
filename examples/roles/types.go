package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Inference is the resource that inference.yaml defines.
type Inference struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Roles []Role `json:"roles"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string `json:"currentRevision,omitempty"`
		Ready           int32  `json:"ready"`
		Message         string `json:"message,omitempty"`
	} `json:"status"`
}

// Role is a part of the service.
type Role struct {
	Name           string                 `json:"name"`
	Replicas       int32                  `json:"replicas"`
	MaxUnavailable int32                  `json:"maxUnavailable"`
	Template       corev1.PodTemplateSpec `json:"template"`
}

// InferenceList is a list of them.
type InferenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Inference `json:"items"`
}

// DeepCopy returns a copy. A real operator has it generated.
func (s *Inference) DeepCopy() *Inference {
	c := *s
	c.ObjectMeta = *s.ObjectMeta.DeepCopy()
	c.Spec.Roles = slices.Clone(s.Spec.Roles)
	for i := range c.Spec.Roles {
		c.Spec.Roles[i].Template = *s.Spec.Roles[i].Template.DeepCopy()
	}
	return &c
}

// DeepCopyObject returns a copy.
func (s *Inference) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *InferenceList) DeepCopyObject() runtime.Object {
	c := &InferenceList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

func kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Inference"}
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(kind().GroupVersion(), &Inference{}, &InferenceList{})
	metav1.AddToGroupVersion(s, kind().GroupVersion())
	return nil
}

package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fleet is the upper resource that fleet.yaml defines.
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Units is the number of units. MaxUnavailable bounds those that an update takes out of traffic, and DrainSeconds
		// pass before such a unit changes.
		Units          int32 `json:"units"`
		MaxUnavailable int32 `json:"maxUnavailable"`
		DrainSeconds   int32 `json:"drainSeconds"`
		// Size is the number of pods of each unit, and Template that of the pods.
		Size     int32                  `json:"size"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string `json:"currentRevision,omitempty"`
	} `json:"status"`
}

// Unit is the lower resource: some pods that serve together.
type Unit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Revision is that of the Fleet.
		Revision string                 `json:"revision"`
		Size     int32                  `json:"size"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string `json:"currentRevision,omitempty"`
		// Revision is that of the Fleet which all pods run, and Ready the number of pods that serve.
		Revision string `json:"revision,omitempty"`
		Ready    int32  `json:"ready"`
		// Conditions has InTraffic, False, while the Fleet keeps the unit out of traffic.
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// FleetList is a list of them.
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Fleet `json:"items"`
}

// UnitList is a list of them.
type UnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Unit `json:"items"`
}

// DeepCopy returns a copy. A real operator has it generated.
func (f *Fleet) DeepCopy() *Fleet {
	c := *f
	c.ObjectMeta, c.Spec.Template = *f.ObjectMeta.DeepCopy(), *f.Spec.Template.DeepCopy()
	return &c
}

// DeepCopy returns a copy.
func (u *Unit) DeepCopy() *Unit {
	c := *u
	c.ObjectMeta, c.Spec.Template = *u.ObjectMeta.DeepCopy(), *u.Spec.Template.DeepCopy()
	c.Status.Conditions = slices.Clone(u.Status.Conditions)
	return &c
}

// DeepCopyObject returns a copy.
func (f *Fleet) DeepCopyObject() runtime.Object { return f.DeepCopy() }

// DeepCopyObject returns a copy.
func (u *Unit) DeepCopyObject() runtime.Object { return u.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *FleetList) DeepCopyObject() runtime.Object {
	c := &FleetList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

// DeepCopyObject returns a copy.
func (l *UnitList) DeepCopyObject() runtime.Object {
	c := &UnitList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
}

func addToScheme(s *runtime.Scheme) error {
	version := kind("").GroupVersion()
	s.AddKnownTypes(version, &Fleet{}, &FleetList{}, &Unit{}, &UnitList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}

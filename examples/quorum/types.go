package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Database is the resource that database.yaml defines.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Members is the odd number of pods that vote.
		Members  int32                            `json:"members"`
		Template corev1.PodTemplateSpec           `json:"template"`
		Claim    corev1.PersistentVolumeClaimSpec `json:"claim"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string `json:"currentRevision,omitempty"`
		Ready           int32  `json:"ready"`
		Message         string `json:"message,omitempty"`
	} `json:"status"`
}

// DatabaseList is a list of databases.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Database `json:"items"`
}

// DeepCopy returns a copy. A real operator has it generated.
func (d *Database) DeepCopy() *Database {
	c := *d
	c.ObjectMeta = *d.ObjectMeta.DeepCopy()
	c.Spec.Template, c.Spec.Claim = *d.Spec.Template.DeepCopy(), *d.Spec.Claim.DeepCopy()
	return &c
}

// DeepCopyObject returns a copy.
func (d *Database) DeepCopyObject() runtime.Object { return d.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *DatabaseList) DeepCopyObject() runtime.Object {
	c := &DatabaseList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

func kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(kind().GroupVersion(), &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(s, kind().GroupVersion())
	return nil
}

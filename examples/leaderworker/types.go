package main

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/workload"
)

// LeaderWorker is the resource that leaderworker.yaml defines.
type LeaderWorker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Replicas is the number of groups, Size the number of pods of each, MaxUnavailable bounds the groups that an update
		// takes out of traffic.
		Replicas       int32                  `json:"replicas"`
		Size           int32                  `json:"size"`
		MaxUnavailable int32                  `json:"maxUnavailable"`
		Leader         corev1.PodTemplateSpec `json:"leader"`
		Worker         corev1.PodTemplateSpec `json:"worker"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string            `json:"currentRevision,omitempty"`
		Restarts        workload.Restarts `json:"restarts,omitempty"`
		Message         string            `json:"message,omitempty"`
	} `json:"status"`
}

// LeaderWorkerList is a list of them.
type LeaderWorkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []LeaderWorker `json:"items"`
}

// DeepCopy returns a copy. A real operator has it generated.
func (s *LeaderWorker) DeepCopy() *LeaderWorker {
	c := *s
	c.ObjectMeta = *s.ObjectMeta.DeepCopy()
	c.Spec.Leader, c.Spec.Worker = *s.Spec.Leader.DeepCopy(), *s.Spec.Worker.DeepCopy()
	c.Status.Restarts = maps.Clone(s.Status.Restarts)
	return &c
}

// DeepCopyObject returns a copy.
func (s *LeaderWorker) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *LeaderWorkerList) DeepCopyObject() runtime.Object {
	c := &LeaderWorkerList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

func kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "LeaderWorker"}
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(kind().GroupVersion(), &LeaderWorker{}, &LeaderWorkerList{})
	metav1.AddToGroupVersion(s, kind().GroupVersion())
	return nil
}

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

func kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"}
}

package v1alpha1_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestSidecarSetDefaultIsThatOfTheHub(t *testing.T) {
	set := v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{
		Namespace:         "ns1",
		InitContainers:    []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "setup"}}},
		Containers:        []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "proxy"}}},
		PatchPodMetadata:  []v1alpha1.SidecarSetPatchPodMetadata{{}},
		InjectionStrategy: v1alpha1.SidecarSetInjectionStrategy{Revision: &v1alpha1.SidecarSetInjectRevision{}},
	}}
	set.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: "1"}
	want, got := v1beta1.SidecarSet{}, v1beta1.SidecarSet{}
	if err := set.ConvertTo(&want); err != nil {
		t.Fatal(err)
	}
	want.Default()
	set.Default()
	if err := set.ConvertTo(&got); err != nil {
		t.Fatal(err)
	}
	equal(t, want, got)
	equal(t, "ns1", set.Spec.Namespace)
}

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with s.
func (s *SidecarSet) ConvertTo(hub *v1beta1.SidecarSet) error {
	return roundtrip.Up(s, hub, sidecarSetUp, sidecarSetDown)
}

// ConvertFrom fills s with hub.
func (s *SidecarSet) ConvertFrom(hub *v1beta1.SidecarSet) error {
	return roundtrip.Down(hub, s, sidecarSetUp, sidecarSetDown)
}

func sidecarSetUp(s *SidecarSet, hub *v1beta1.SidecarSet) {
	hub.ObjectMeta = s.ObjectMeta
	hub.Labels = roundtrip.WithKey(s.Labels, SidecarSetCustomVersionLabel, "")
	hub.Status = s.Status
	hub.Spec = v1beta1.SidecarSetSpec{
		Selector:             s.Spec.Selector,
		NamespaceSelector:    s.Spec.NamespaceSelector,
		InitContainers:       s.Spec.InitContainers,
		Containers:           s.Spec.Containers,
		Volumes:              s.Spec.Volumes,
		ImagePullSecrets:     s.Spec.ImagePullSecrets,
		InjectionStrategy:    s.Spec.InjectionStrategy,
		UpdateStrategy:       s.Spec.UpdateStrategy,
		RevisionHistoryLimit: s.Spec.RevisionHistoryLimit,
		PatchPodMetadata:     s.Spec.PatchPodMetadata,
		CustomVersion:        s.Labels[SidecarSetCustomVersionLabel],
	}
	if s.Spec.Namespace != "" {
		hub.Spec.NamespaceSelector = selectNamespace(s.Spec.Namespace)
	}
}

func sidecarSetDown(hub *v1beta1.SidecarSet, s *SidecarSet) {
	s.ObjectMeta = hub.ObjectMeta
	if hub.Spec.CustomVersion != "" {
		s.Labels = roundtrip.WithKey(hub.Labels, SidecarSetCustomVersionLabel, hub.Spec.CustomVersion)
	}
	s.Status = hub.Status
	s.Spec = SidecarSetSpec{
		Selector:             hub.Spec.Selector,
		NamespaceSelector:    hub.Spec.NamespaceSelector,
		InitContainers:       hub.Spec.InitContainers,
		Containers:           hub.Spec.Containers,
		Volumes:              hub.Spec.Volumes,
		ImagePullSecrets:     hub.Spec.ImagePullSecrets,
		InjectionStrategy:    hub.Spec.InjectionStrategy,
		UpdateStrategy:       hub.Spec.UpdateStrategy,
		RevisionHistoryLimit: hub.Spec.RevisionHistoryLimit,
		PatchPodMetadata:     hub.Spec.PatchPodMetadata,
	}
}

// selectNamespace selects the one namespace of that name.
func selectNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

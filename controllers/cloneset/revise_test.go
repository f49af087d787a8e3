package cloneset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClaimsHash(t *testing.T) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Labels: map[string]string{"no": "matter"}}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"storage": resource.MustParse("2Gi")},
		},
	}
	for want, templates := range map[string][]corev1.PersistentVolumeClaim{"": nil, "1129974074": {claim}} {
		if got, err := claimsHash(templates); err != nil || got != want {
			t.Errorf("%d templates: want %q, got %q, %v", len(templates), want, got, err)
		}
	}
}

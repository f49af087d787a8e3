package claims_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/claims"
)

func template(name string) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"no": "matter"}}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"storage": resource.MustParse("2Gi")},
		},
	}
	return claim
}

func TestHash(t *testing.T) {
	for want, templates := range map[string][]corev1.PersistentVolumeClaim{"": nil, "1129974074": {template("pvc-1")}} {
		if got, err := claims.Hash(templates); err != nil || got != want {
			t.Errorf("%d templates: want %q, got %q, %v", len(templates), want, got, err)
		}
	}
	one, _ := claims.Hash([]corev1.PersistentVolumeClaim{template("a"), template("b")})
	other, _ := claims.Hash([]corev1.PersistentVolumeClaim{template("b"), template("a")})
	if one != other {
		t.Errorf("the order of the templates matters: %s and %s", one, other)
	}
}

func TestNew(t *testing.T) {
	from, bare := template("data"), template("logs")
	bare.Labels = nil
	owner := []metav1.OwnerReference{{UID: "1"}}
	identity := claims.Identity{Namespace: "shop", Workload: "web", Pod: "x7", Labels: map[string]string{"no": "longer", "app": "web"}, Owners: owner}
	want := &corev1.PersistentVolumeClaim{Spec: from.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "data-web-x7", Labels: identity.Labels, OwnerReferences: owner,
	}}
	if diff := cmp.Diff(want, claims.New(&from, identity)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if from.Labels["no"] != "matter" {
		t.Error("the template has changed")
	}
	if got := claims.New(&bare, identity); got.Labels["app"] != "web" {
		t.Errorf("a template without labels: %v", got.Labels)
	}
}

func TestMount(t *testing.T) {
	pod := &corev1.PodSpec{Volumes: []corev1.Volume{{Name: "logs"}, {Name: "tmp"}}}
	claims.Mount(pod, []corev1.PersistentVolumeClaim{template("data"), template("logs")}, "web", "0")
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	want := []corev1.Volume{{Name: "tmp"}, {Name: "data", VolumeSource: claim("data-web-0")}, {Name: "logs", VolumeSource: claim("logs-web-0")}}
	if diff := cmp.Diff(want, pod.Volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

// One parsed set is injected into many pods at once. The pods share nothing, and the set does not change. The test is
// here because package sidecar, which starts no goroutine, runs without the race detector.
func TestSetIsShared(t *testing.T) {
	stored := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{
		Name: "s", Annotations: map[string]string{kruise.SidecarSetHashKey: "h"},
	}}
	stored.Spec = v1beta1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		Containers: []v1beta1.SidecarContainer{{
			Container: corev1.Container{
				Name: "c", Image: "c:1", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
			},
			UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{
				UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty",
			},
			ShareVolumePolicy: v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumePolicyEnabled},
			TransferEnv:       []v1beta1.TransferEnvVar{{SourceContainerName: "main", EnvNames: []string{"POD_NAME"}}},
		}},
		Volumes: []corev1.Volume{{Name: "v"}},
		PatchPodMetadata: []v1beta1.SidecarSetPatchPodMetadata{{
			Annotations: map[string]string{"k": "v"}, PatchPolicy: v1beta1.SidecarSetOverwritePatchPolicy,
		}},
	}
	set, err := sidecar.Parse(stored)
	if err != nil {
		t.Fatal(err)
	}
	was := set.Object().DeepCopy()
	results := make(chan *corev1.Pod)
	for range 4 {
		go func() {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "shop"}}}
			pod.Spec.Containers = []corev1.Container{{
				Name:         "main",
				Env:          []corev1.EnvVar{{Name: "POD_NAME", Value: "p"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "d", MountPath: "/d"}},
			}}
			injection, err := sidecar.Inject(pod, []*sidecar.Set{set}, sidecar.Options{})
			if err != nil {
				t.Error(err)
			}
			results <- injection.Pod
		}()
	}
	first := <-results
	if len(first.Spec.Containers) != 3 || len(first.Spec.Volumes) != 1 || first.Annotations["k"] != "v" {
		t.Errorf("the pod has %d containers, %d volumes and the annotations %v",
			len(first.Spec.Containers), len(first.Spec.Volumes), first.Annotations)
	}
	for range 3 {
		other := <-results
		if diff := cmp.Diff(first, other); diff != "" {
			t.Errorf("one pod and another (-want +got):\n%s", diff)
		}
		other.Spec.Containers[0].Env[0].Value = "changed"
		other.Annotations[kruise.SidecarSetHashKey] = "changed"
	}
	if diff := cmp.Diff(was, set.Object()); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
}

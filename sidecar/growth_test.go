package sidecar_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/test/growth"
)

// TestInjectionsGrowWithThePod: twenty times of what a container lends costs about twenty times as much. The API server
// has not validated the pod yet.
func TestInjectionsGrowWithThePod(t *testing.T) {
	const n, times = 500, 20
	sets := parse(sidecarSet("mesh",
		of(container("proxy", sharing, sharingDevices, computes(sum, ".*", "cpu", "", "", "")))))
	for name, build := range map[string]func(c *corev1.Container, pod *corev1.Pod, i int){
		"mounts":  func(c *corev1.Container, _ *corev1.Pod, i int) { mounts("a", fmt.Sprintf("/%07d", i))(c) },
		"devices": func(c *corev1.Container, _ *corev1.Pod, i int) { devices("a", fmt.Sprintf("/%07d", i))(c) },
		"variables": func(c *corev1.Container, _ *corev1.Pod, i int) {
			env(fmt.Sprintf("A%07d", i), "1")(c)
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: "a", MountPath: "/a", SubPathExpr: fmt.Sprintf("$(A%07d)", i/2),
			})
		},
		"injected containers": func(_ *corev1.Container, pod *corev1.Pod, i int) {
			pod.Spec.Containers = append(pod.Spec.Containers, own(fmt.Sprintf("c%07d", i), env("IS_INJECTED", "true")))
		},
		"pull secrets": func(_ *corev1.Container, pod *corev1.Pod, i int) {
			pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets,
				corev1.LocalObjectReference{Name: fmt.Sprintf("%07d", i)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, n, times, func(n int) func() {
				pod := podOf(own("main", limits("1", "1")))
				for i := range n {
					build(&pod.Spec.Containers[0], pod, i)
				}
				return func() {
					if _, err := sidecar.Inject(pod, sets, at()); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

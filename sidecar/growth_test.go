package sidecar_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar"
)

// TestInjectionsGrowWithThePod: twenty times of what a container lends costs about twenty times as much. The API server has not validated the
// pod yet.
func TestInjectionsGrowWithThePod(t *testing.T) {
	const n, times, rounds = 500, 20, 3
	sets := parse(sidecarSet("mesh", of(container("proxy", sharing, sharingDevices, computes(sum, ".*", "cpu", "", "", "")))))
	for name, build := range map[string]func(c *corev1.Container, pod *corev1.Pod, i int){
		"mounts":  func(c *corev1.Container, _ *corev1.Pod, i int) { mounts("a", fmt.Sprintf("/%07d", i))(c) },
		"devices": func(c *corev1.Container, _ *corev1.Pod, i int) { devices("a", fmt.Sprintf("/%07d", i))(c) },
		"variables": func(c *corev1.Container, _ *corev1.Pod, i int) {
			env(fmt.Sprintf("A%07d", i), "1")(c)
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "a", MountPath: "/a", SubPathExpr: fmt.Sprintf("$(A%07d)", i/2)})
		},
		"injected containers": func(_ *corev1.Container, pod *corev1.Pod, i int) {
			pod.Spec.Containers = append(pod.Spec.Containers, own(fmt.Sprintf("c%07d", i), env("IS_INJECTED", "true")))
		},
		"pull secrets": func(_ *corev1.Container, pod *corev1.Pod, i int) {
			pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: fmt.Sprintf("%07d", i)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fastest := func(n int) time.Duration {
				pod := podOf(own("main", limits("1", "1")))
				for i := range n {
					build(&pod.Spec.Containers[0], pod, i)
				}
				best := time.Hour
				for range 3 {
					start := time.Now()
					if _, err := sidecar.Inject(pod, sets, at()); err != nil {
						t.Fatal(err)
					}
					best = min(best, time.Since(start))
				}
				return best
			}
			var small, large time.Duration
			for range rounds {
				if small, large = fastest(n), fastest(times*n); large <= 5*times*small {
					break
				}
			}
			if large > 5*times*small { // a busy machine is allowed for, in one of the rounds; a square is not
				t.Errorf("%d take %s, %d take %s", n, small, times*n, large)
			}
		})
	}
}

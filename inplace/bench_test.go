package inplace_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// typical is a template with three containers of 20 variables each.
func typical(tag string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "version": tag}}}
	t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	for i := range 3 {
		c := corev1.Container{
			Name:  fmt.Sprintf("c%d", i),
			Image: "registry.example.com/team/app:" + tag,
			Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready"}}},
			VolumeMounts:   []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}
		for j := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VAR_%d", j), Value: "some value"})
		}
		t.Spec.Containers = append(t.Spec.Containers, c)
	}
	return t
}

// otherwise is a template with its amounts written in another way, as one that was stored and read again may have them.
func otherwise(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	for i := range t.Spec.Containers {
		r := &t.Spec.Containers[i].Resources
		r.Requests, r.Limits = amounts("cpu", "1000m", "memory", "1024Mi"), amounts("cpu", "2000m", "memory", "2048Mi")
	}
	return t
}

func BenchmarkDiff(b *testing.B) {
	for name, to := range map[string]*corev1.PodTemplateSpec{
		"image": typical("2"), "image, amounts written otherwise": otherwise(typical("2")),
	} {
		from := typical("1")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := inplace.Diff(from, to, inplace.Policy{Env: inplace.EnvRestart}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// decisions are those for one pod in each situation that a rollout walks through again and again.
func decisions(t testing.TB) map[string]func() (inplace.Action, error) {
	t.Helper()
	now := time.Unix(1e9, 0)
	change, err := inplace.Diff(typical("1"), typical("2"), inplace.Policy{Env: inplace.EnvRestart})
	if err != nil {
		t.Fatal(err)
	}
	idle := running(typical("1"), "web-1")
	waits := idle.DeepCopy()
	waits.Labels[kruise.PodRevisionLabelKey] = "web-2"
	condition(waits, kruise.InPlaceUpdateReady).Status = corev1.ConditionFalse
	waits.Annotations = map[string]string{
		kruise.InPlaceUpdateStateKey: `{"revision":"web-2","updateTimestamp":"2026-11-21T03:00:05Z",` +
			`"lastContainerStatuses":{` + lastOf("c0") + "," + lastOf("c1") + "," + lastOf("c2") + `},"updateImages":true,` +
			`"containerBatchesRecord":[{"timestamp":"2026-11-21T03:00:05Z","containers":["c0","c1","c2"]}]}`,
	}
	for i := range waits.Spec.Containers {
		waits.Spec.Containers[i].Image = "registry.example.com/team/app:2"
	}
	updated := waits.DeepCopy()
	condition(updated, kruise.InPlaceUpdateReady).Status = corev1.ConditionTrue
	return map[string]func() (inplace.Action, error){
		"updated": func() (inplace.Action, error) {
			return inplace.Next(inplace.Update{Pod: updated}, inplace.Policy{}, now)
		},
		"idle":  func() (inplace.Action, error) { return inplace.Next(inplace.Update{Pod: idle}, inplace.Policy{}, now) },
		"waits": func() (inplace.Action, error) { return inplace.Next(inplace.Update{Pod: waits}, inplace.Policy{}, now) },
		"begins": func() (inplace.Action, error) {
			return inplace.Next(inplace.Update{Pod: idle, Change: change, Revision: "web-2"}, inplace.Policy{}, now)
		},
	}
}

// TestAllocations keeps what a rollout does for every template and every pod from becoming dear unnoticed. Times depend
// on the machine, allocations do not.
func TestAllocations(t *testing.T) {
	// Two templates of three containers that are the same but for their images, so that nothing is compared by meaning.
	for name, to := range map[string]*corev1.PodTemplateSpec{
		"image": typical("2"), "image, amounts written otherwise": otherwise(typical("2")),
	} {
		from := typical("1")
		if got := testing.AllocsPerRun(10, func() {
			_, _ = inplace.Diff(from, to, inplace.Policy{Env: inplace.EnvRestart})
		}); got > 140 {
			t.Errorf("%s: %.0f allocations", name, got)
		}
	}
	most := map[string]float64{"idle": 0, "updated": 0, "waits": 46, "begins": 4}
	for name, decide := range decisions(t) {
		if got := testing.AllocsPerRun(10, func() { _, _ = decide() }); got > most[name] {
			t.Errorf("%s: %.0f allocations, want at most %.0f", name, got, most[name])
		}
	}
}

func lastOf(container string) string {
	return `"` + container + `":{"imageID":"id-of-registry.example.com/team/app:1","containerID":"containerd://` +
		container +
		`-0","image":"registry.example.com/team/app:1"}`
}

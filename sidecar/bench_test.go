package sidecar_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar"
)

// meshes are three sets as people have them: a proxy that shares and takes over much, an agent that is sized, and one
// for hot upgrades.
func meshes() []*sidecar.Set {
	return parse(
		sidecarSet("mesh", of(container("proxy", sharing, transfers("app0", "A", "B"), core(mounts("logs", "/logs")))),
			ofInit(container("setup")), volumes("logs"), secrets("registry"), hashed("h1", "mesh-1"),
			patches(retain, "mesh", "on")),
		sidecarSet("agent",
			of(container("agent", computes(sum, "^app", "max(cpu*50%, 50m)", "memory*10%", "cpu*10%", "memory*5%"))),
			hashed("h2", "agent-1")),
		sidecarSet("hot", of(container("hot", hot("empty:1"), behind)), hashed("h3", "hot-1")),
	)
}

func busyPod() *corev1.Pod {
	pod := podOf()
	for i := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, own(fmt.Sprintf("app%d", i), limits("1", "1Gi"),
			requests("500m", "512Mi"), env("A", "1", "B", "2", "C", "3"),
			mounts("data", "/data", "tmp", fmt.Sprintf("/tmp%d", i))))
	}
	pod.Spec.Volumes = emptyDirs("", "data", "tmp")
	return pod
}

// many are sets for other pods, and three for this.
func many(n int) []*sidecar.Set {
	all := meshes()
	for i := range n - len(all) {
		all = append(all, parse(sidecarSet(fmt.Sprintf("other-%d", i), selects(withLabels("app", fmt.Sprintf("other-%d", i))),
			of(container("c")), hashed("h", "r")))...)
	}
	return all
}

func BenchmarkInject(b *testing.B) {
	pod, sets := busyPod(), meshes()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sidecar.Inject(pod, sets, at()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAllocations keeps an injection well within what a whole admission may take, and a set that does not match from
// costing any.
func TestAllocations(t *testing.T) {
	pod, sets := busyPod(), meshes()
	got := testing.AllocsPerRun(100, func() {
		if _, err := sidecar.Inject(pod, sets, at()); err != nil {
			t.Fatal(err)
		}
	})
	if got > 500 {
		t.Errorf("an injection takes %v allocations", got)
	}
	perSet := func(n int) float64 {
		all := many(n)
		return testing.AllocsPerRun(100, func() {
			if _, err := sidecar.Select(pod, nil, all); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, lots := perSet(10), perSet(1000); lots > few+5 {
		t.Errorf("a selection takes %v allocations of 10 sets, and %v of 1000", few, lots)
	}
}

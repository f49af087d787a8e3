//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// busy makes a node pull an image and stop a container with a hook, and returns while both are under way.
func (m *deployed) busy(t *testing.T, number int) (*pulls, *recreation) {
	t.Helper()
	node := fmt.Sprintf("node-%d", number)
	r := m.newRecreation(t, node, func(s *corev1.PodSpec) { s.Containers[0].Lifecycle = hook(5) }, "a", "b")
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.hold = make(chan struct{}) })
	p.job(t, func(s *v1beta1.ImagePullJobSpec) {
		retry(s)
		s.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{node}}
	})
	p.pulling(t, 1)
	err := r.ask(t, "both", func(s *v1beta1.ContainerRecreateRequestSpec) { s.Strategy.OrderedRecreate = true }, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	r.begun(t, "both")
	return p, r
}

// testRuntimeCrashes: the runtime of a node crashes during a pull and a hook. Both go on with the next one.
func (m *deployed) testRuntimeCrashes(t *testing.T, number int) {
	p, r := m.busy(t, number)
	start := m.KillRuntime(t, number)
	eventually(t, func(context.Context) error {
		if n := get(p.registry, func(r *registry) int { return r.atOnce }); n != 0 {
			return fmt.Errorf("%d layers are under way", n)
		}
		return nil
	})
	start()
	p.registry.release()
	p.ends(t, 1, 0)
	p.on(t, p.reference(), number)
	r.ends(t, "both", "", succeeded, succeeded)
	r.restarted(t, map[string]int32{"a": 1, "b": 1})
}

// testDaemonKilled: the daemon of a node is killed during a pull and a hook. The next daemon asks for the layer again.
func (m *deployed) testDaemonKilled(t *testing.T, number int) {
	p, r := m.busy(t, number)
	m.killDaemon(t, fmt.Sprintf("node-%d", number))
	asked := func() int { return get(p.registry, func(r *registry) int { return r.asked[p.repository] }) }
	eventually(t, func(context.Context) error {
		if n := asked(); n != 2 {
			return fmt.Errorf("the layer was asked for %d times", n)
		}
		return nil
	})
	p.pulling(t, 1)
	p.registry.release()
	p.ends(t, 1, 0)
	if n, given := asked(), get(p.registry, func(r *registry) int { return r.given[p.repository] }); n != 2 || given != 1 {
		t.Errorf("the layer was asked for %d times, and given %d times, want 2 and 1", n, given)
	}
	r.ends(t, "both", "", succeeded, succeeded)
	r.restarted(t, map[string]int32{"a": 1, "b": 1})
}

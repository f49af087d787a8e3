//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// testStalled: a rollout to an image that no registry has stalls. `kubectl describe` prints the reason, and the other
// pod is ready.
func (m *deployed) testStalled(t *testing.T) {
	s := m.newSet(t, "stalled")
	s.create(t, 2, nil)
	s.change(t, func(spec *v1beta1.CloneSetSpec) {
		spec.Template.Spec.Containers[0].Image = s.images["old"].Name + "-missing"
	})
	s.waitFor(t, "the condition Stalled, while one pod serves", func(l look) error {
		if n := serving(l.pods); len(l.pods) != 2 || n < 1 {
			t.Fatalf("%d pods, %d of them are ready, want 2 and at least 1", len(l.pods), n)
		}
		for _, c := range l.set.Status.Conditions {
			if c.Type == "Stalled" && c.Status == "True" && c.Reason == "ImagePullFailed" {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", l.set.Status.Conditions)
	})
	described, err := s.Kubectl(t.Context(), "describe", "clonesets.apps.kruise.io", "-n", s.namespace, s.name)
	if err != nil {
		t.Fatal(err)
	}
	_, conditions, _ := strings.Cut(described, "  Conditions:\n")
	conditions, _, _ = strings.Cut(conditions, "  Current Revision:")
	t.Logf("kubectl describe prints\n%s", conditions)
	for _, text := range []string{"Stalled", "ImagePullFailed", s.images["old"].Name + "-missing"} {
		if !strings.Contains(conditions, text) {
			t.Errorf("kubectl describe does not print %q", text)
		}
	}
}

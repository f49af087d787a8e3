//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// stalledSet is a CloneSet whose image cannot be pulled, and later is another one.
type stalledSet struct {
	*theSet
	before map[string]*corev1.Pod
	rolled bool
}

// testStalls: a rollout to an image that no registry has stands still. `kubectl describe` prints why, and the pods that
// the rollout has not reached serve.
func (s *stalledSet) testStalls(t *testing.T) {
	s.create(t, 2, nil)
	s.before = s.pods(t)
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

	s.roll(t)
	s.rolled = true
}

// testEnds: another image ends the condition, and restarts no pod more than once. Kubelets wait before they start a
// container again, so that this takes a minute.
func (s *stalledSet) testEnds(t *testing.T) {
	if !s.rolled {
		t.Fatal("the set did not stall")
	}
	s.waitFor(t, "the new image in the same pods", func(l look) error {
		for name, pod := range l.pods {
			if was := s.before[name]; was == nil || was.UID != pod.UID {
				t.Fatalf("%s is not of the pods of before", name)
			}
		}
		for _, c := range l.set.Status.Conditions {
			if c.Type == "Stalled" {
				return fmt.Errorf("the condition is %+v", c)
			}
		}
		return s.all("new", 1)(l)
	})
}

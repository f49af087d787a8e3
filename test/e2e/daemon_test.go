//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// daemons are the pods of the daemon.
func (m *deployed) daemons(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := m.Client.List(t.Context(), &pods, client.InNamespace(system),
		client.MatchingLabels{"control-plane": "daemon"}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// killDaemon ends the daemon of a node at once. Its kubelet starts another.
func (m *deployed) killDaemon(t *testing.T, node string) {
	t.Helper()
	for _, pod := range m.daemons(t) {
		if pod.Spec.NodeName == node {
			m.killProcess(t, pod.Name, "kruise-daemon")
			return
		}
	}
	t.Fatalf("%s has no daemon", node)
}

// A label that feeds the environment of one container restarts this container, and no other.
func (m *deployed) testEnvOfLabel(t *testing.T) {
	s := m.newSet(t, "fed")
	const key = "tests.kruisekit.dev/color"
	s.create(t, 2, func(spec *v1beta1.CloneSetSpec) {
		spec.Template.Labels[key] = "red"
		spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + key + "']"},
		}}}
	})
	before := s.pods(t)
	s.change(t, func(spec *v1beta1.CloneSetSpec) { spec.Template.Labels[key] = "blue" })
	s.waitFor(t, "restarts", s.all("old", 1))
	sameButFor(t, "main", before, s.pods(t))
	for name := range before {
		if color := s.sh(t, name, "main", "echo $COLOR"); color != "blue" {
			t.Errorf("%s has %q in its environment", name, color)
		}
	}
}

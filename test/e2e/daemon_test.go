//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
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

// A rollout that begins with some pods has the others' nodes pull the new image.
func (m *deployed) testPullAhead(t *testing.T) {
	s := m.newSet(t, "ahead")
	p := &pulls{deployed: m, namespace: s.namespace, registry: newRegistry(t, m.Cluster)}
	p.pushed = m.Push(t, image.Spec{Name: s.namespace + "/nginx:1"})
	s.create(t, 5, func(spec *v1beta1.CloneSetSpec) {
		// One on each node at least, wherever the scheduler puts the others.
		spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.name}},
		}}
	})
	s.images["new"] = image.Image{Name: p.reference(), Digest: p.pushed.Digest, ID: p.pushed.ID}
	s.change(t, func(spec *v1beta1.CloneSetSpec) {
		spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("100%"))
		spec.Template.Spec.Containers[0].Image = p.reference()
	})
	eventually(t, func(ctx context.Context) error {
		var jobs v1beta1.ImagePullJobList
		if err := m.Client.List(ctx, &jobs, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(jobs.Items) != 1 || jobs.Items[0].Spec.Image != p.reference() || jobs.Items[0].Status.Succeeded != 3 {
			return fmt.Errorf("jobs %+v", jobs.Items)
		}
		return nil
	})
	p.on(t, p.reference(), 1, 2, 3)
	if n := s.running(s.pods(t), "new"); n != 0 {
		t.Errorf("%d pods run the new image already", n)
	}
	s.change(t, func(spec *v1beta1.CloneSetSpec) { spec.UpdateStrategy.RollingUpdate.Partition = nil })
	s.waitFor(t, "the rollout", s.all("new", 1))
	eventually(t, func(ctx context.Context) error {
		var jobs v1beta1.ImagePullJobList
		err := m.Client.List(ctx, &jobs, client.InNamespace(s.namespace))
		if err == nil && len(jobs.Items) > 0 {
			err = fmt.Errorf("%d jobs are left", len(jobs.Items))
		}
		return err
	})
}

// kubectl prints what the reference has it print.
func (m *deployed) testPrinted(t *testing.T) {
	r := m.newRecreation(t, "node-1", nil, "a")
	if err := r.ask(t, "printed", nil, "a"); err != nil {
		t.Fatal(err)
	}
	r.ends(t, "printed", "", succeeded)
	p := m.newPulls(t)
	p.job(t, func(s *v1beta1.ImagePullJobSpec) { s.CompletionPolicy.TTLSecondsAfterFinished = ptr.To(int32(600)) })
	p.ends(t, 3, 0)
	for kind, want := range map[string]string{
		"imagepulljob -n " + p.namespace: "NAME TOTAL ACTIVE SUCCEED FAILED AGE",
		"nodeimage":                      "NAME DESIRED PULLING SUCCEED FAILED AGE",
		"crr -n " + r.namespace:          "NAME PHASE POD NODE AGE",
	} {
		printed, err := m.Kubectl(t.Context(), append([]string{"get"}, strings.Fields(kind)...)...)
		if err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(printed, "\n")
		if got := strings.Join(strings.Fields(header), " "); got != want {
			t.Errorf("%s has the columns %s, want %s", kind, got, want)
		}
		t.Logf("kubectl get %s\n%s", kind, printed)
	}
}

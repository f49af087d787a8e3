package kinds_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

func TestTemplatePath(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {template: {spec: {}}}}": "spec.template.spec",
		"{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, spec: {template: {cloneSetTemplate: " +
			"{spec: {template: {}}}}}}": "spec.template.cloneSetTemplate.spec.template.spec",
		"{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, spec: {template: {broadcastJobTemplate: " +
			"{spec: {template: {}}}}}}": "spec.template.broadcastJobTemplate.spec.template.spec",
		"{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet}": "spec",
		"{apiVersion: batch/v1, kind: CronJob}":                  "spec.jobTemplate.spec.template.spec",
		"{apiVersion: apps.kruise.io/v1beta1, kind: NodeImage}":  "",
		"{apiVersion: v1, kind: X, spec: {template: text}}":      "",
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(kinds.PodSpecPath(o), "."); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestKept(t *testing.T) {
	for name, row := range map[string]struct {
		partition      string
		replicas, want int32
	}{
		"a number":                    {"2", 5, 2},
		"more than there are":         {"9", 5, 5},
		"a negative number":           {"-1", 5, 0},
		"a percentage rounds up":      {"50%", 5, 3},
		"less than all keeps not all": {"99%", 5, 4},
		"all":                         {"100%", 5, 5},
		"one replica":                 {"50%", 1, 1},
		"what cannot be read":         {"x", 5, 0},
	} {
		partition := intstr.Parse(row.partition)
		if got := kinds.Kept(&partition, row.replicas); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
	if got := kinds.Kept(nil, 3); got != 0 {
		t.Errorf("no partition keeps %d", got)
	}
}

// A strategy is the same in both versions.
func TestStrategyOf(t *testing.T) {
	older := `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {replicas: 2, template: {},
		updateStrategy: {type: InPlaceOnly, paused: true, partition: 1, maxUnavailable: 3}}}`
	newer := `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {replicas: 2, template: {},
		updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, paused: true, partition: 1, maxUnavailable: 3}}}}`
	for _, text := range []string{older, newer} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		s, is, err := kinds.StrategyOf(o)
		if err != nil || !is || s.Policy != kinds.InPlaceOnly || !s.Paused || s.Partition.IntVal != 1 ||
			s.MaxUnavailable.IntVal != 3 || s.Replicas != 2 {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

package scope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/internal/scope"
)

func marker(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	m := &unstructured.Unstructured{}
	text := fmt.Sprintf(
		"{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {namespace: %s, name: %s}, spec: %s}",
		namespace, name, spec)
	if err := yaml.Unmarshal([]byte(text), &m.Object); err != nil {
		t.Fatal(err)
	}
	return m
}

const idle = `probes: [{name: idle, containerName: main, podConditionType: a/idle, probe: {exec: {command: [idle]}}}]`

// What is sent for markers: pods of their namespaces, in entries that are ignored while no replica answers.
func TestProbes(t *testing.T) {
	const labels = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, "
	web := `{selector: {matchLabels: {app: web}}, ` + idle + `}`
	var many []*unstructured.Unstructured
	for i := range 40 {
		many = append(many,
			marker(t, "many", fmt.Sprintf("m%d", i), fmt.Sprintf(`{selector: {matchLabels: {app: a%d}}, %s}`, i, idle)))
	}
	for name, c := range map[string]struct {
		why     string
		markers []*unstructured.Unstructured
		want    string
	}{
		"none": {why: "nothing is sent"},
		"one": {
			why:     "pods of its namespace",
			markers: []*unstructured.Unstructured{marker(t, "shop", "a", web)},
			want:    labels + "((request.namespace == 'shop') && 'app' in l && l['app'] == 'web'))",
		},
		"marks": {
			why: "a probe without a condition is not for a provider",
			markers: []*unstructured.Unstructured{
				marker(t, "shop", "a",
					`{selector: {matchLabels: {app: web}}, probes: [{name: a, containerName: main, probe: {}}]}`),
			},
		},
		"all": {
			why:     "an empty selector selects no pods",
			markers: []*unstructured.Unstructured{marker(t, "shop", "a", `{selector: {}, `+idle+`}`)},
		},
		"broken": {
			why: "what cannot be decoded selects no pods",
			markers: []*unstructured.Unstructured{
				marker(t, "shop", "a", `{selector: {matchLabels: {app: web}}, probes: [{name: 7}]}`),
			},
		},
		"unread": {
			why: "a selector that cannot be read selects no pods",
			markers: []*unstructured.Unstructured{
				marker(t, "shop", "a",
					`{selector: {matchLabels: {app: web}, matchExpressions: [{key: a, operator: Near}]}, `+idle+`}`),
			},
		},
		"many": {
			why:     "a namespace of many has all of its pods sent, and another one only its own",
			markers: append(many, marker(t, "shop", "a", web)),
			want: labels +
				"request.namespace == 'many' || ((request.namespace == 'shop') && 'app' in l && l['app'] == 'web'))",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input().Input
			in.Contributions = []scope.Contribution{scope.Probes().Contribute(c.markers)}
			s, err := scope.Plan(in)
			if err != nil || len(s.Notes) > 0 {
				t.Fatal(err, s.Notes)
			}
			got := ""
			for _, e := range s.Entries {
				if !strings.HasPrefix(e.Name, "mpod-open") || *e.FailurePolicy != "Ignore" {
					t.Errorf("entry %s is %s", e.Name, *e.FailurePolicy)
				}
				got += e.MatchConditions[0].Expression
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	with, without := scope.Sources(scope.SourceOptions{Serverless: true}), scope.Sources(scope.SourceOptions{})
	if len(with) != len(without)+1 || with[len(without)].Step != "probes" {
		t.Errorf("%d sources with the gate, %d without", len(with), len(without))
	}
}

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The configuration of kube-state-metrics is read as its documentation says.
func TestOfObject(t *testing.T) {
	text, err := os.ReadFile("../../../config/monitoring/kube-state-metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Spec struct{ Resources []resource }
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(configuration.Spec.Resources, func(r resource) bool {
		return r.GroupVersionKind.Kind == "CloneSet"
	})
	var set map[string]any
	if err := yaml.Unmarshal([]byte(`
metadata: {namespace: shop, name: web, generation: 7, creationTimestamp: "1970-01-01T00:01:00Z"}
spec: {replicas: 3, updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}}
status: {replicas: 3, conditions: [{type: Stalled, status: "True"}]}`), &set); err != nil {
		t.Fatal(err)
	}
	got := configuration.Spec.Resources[at].of(set)
	for _, want := range []string{
		`kruise_cloneset_metadata_generation{cloneset="web",namespace="shop"} 7`,
		`kruise_cloneset_created{cloneset="web",namespace="shop"} 60`,
		`kruise_cloneset_spec_strategy_rollingupdate_max_unavailable{cloneset="web",namespace="shop"} 0.5`,
		`kruise_cloneset_status_condition{cloneset="web",condition="Stalled",namespace="shop",status="True"} 1`,
		`kruise_cloneset_status_condition{cloneset="web",condition="Stalled",namespace="shop",status="False"} 0`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "status_replicas_ready{") {
		t.Errorf("a field that the object lacks has a value:\n%s", got)
	}
}

func TestOfPod(t *testing.T) {
	var pod map[string]any
	if err := yaml.Unmarshal([]byte(`
metadata: {namespace: shop, name: web-1}
status:
  conditions: [{type: Ready, status: "False"}]
  containerStatuses: [{name: main, restartCount: 2}]`), &pod); err != nil {
		t.Fatal(err)
	}
	got := ofPod(unstructured.Unstructured{Object: pod})
	for _, want := range []string{
		`kube_pod_container_status_restarts_total{container="main",namespace="shop",pod="web-1"} 2`,
		`kube_pod_status_ready{condition="false",namespace="shop",pod="web-1"} 1`,
		`kube_pod_status_ready{condition="true",namespace="shop",pod="web-1"} 0`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

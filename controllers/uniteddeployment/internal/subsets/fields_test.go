package subsets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/write"
)

// OpenKruise drops the matchFields of a term. A workload that lacks them keeps its pods, and gets them with the next
// template.
func TestMatchFields(t *testing.T) {
	terms := []string{
		"spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
		"nodeSelectorTerms",
	}
	has := func(o write.Object) bool {
		all, _, _ := unstructured.NestedSlice(o.(*unstructured.Unstructured).Object, terms...)
		for _, term := range all {
			if fields, _ := term.(map[string]any)["matchFields"].([]any); len(fields) > 0 {
				return true
			}
		}
		return false
	}
	u := divided("a")
	without := workload(t, u, "a", 4)
	u.Spec.Topology.Subsets[0].NodeSelectorTerm.MatchFields = []corev1.NodeSelectorRequirement{{
		Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"},
	}}
	with := workload(t, u, "a", 4)
	if !has(with) {
		t.Errorf("a new workload lacks the fields: %v", with.Object["spec"])
	}
	for name, stored := range map[string]*unstructured.Unstructured{"without": without, "with": with} {
		if _, p := plan(t, u, stored); told(p) != "" {
			t.Errorf("the workload %s the fields: %s", name, told(p))
		}
	}
	u.Spec.Replicas = new(int32)
	if _, p := plan(t, u, without); told(p) != "update a" || has(p.Updates[0].Object) {
		t.Errorf("a new number of replicas: %s", told(p))
	}
	u.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image = "web:2"
	if _, p := plan(t, u, without); told(p) != "update a" || !has(p.Updates[0].Object) {
		t.Errorf("a new template: %s", told(p))
	}
	if _, p := plan(t, u, with); told(p) != "update a" || !has(p.Updates[0].Object) {
		t.Errorf("a new template of a workload with the fields: %s", told(p))
	}
}

package entries_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// TestDisruptions: the entries of budgets, with conditions on users, follow the budgets and the list of users. An API
// server rejects an entry that has two conditions of one name.
func TestDisruptions(t *testing.T) {
	g := newGround(t)
	g.Pods = named(name)
	var budgets []*unstructured.Unstructured
	for _, step := range []struct {
		budget string
		exempt []string
	}{
		{"web", []string{"system:kube-scheduler"}},
		{"api", []string{"system:kube-scheduler"}},
		{"api", []string{"a", "b"}},
		{"db", nil},
		{"db", []string{"system:kube-scheduler"}},
	} {
		budgets = append(budgets, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
			"metadata": map[string]any{"namespace": "shop", "name": step.budget},
			"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": step.budget}}},
		}})
		in := scope.Input{Client: g.policy.Client, Namespace: "n"}
		for _, source := range scope.DisruptionSources(true) {
			in.Contributions = append(in.Contributions, source.Contribute(budgets))
		}
		s, err := scope.Disruptions(in, scope.Operations{Deletes: true, Updates: true, Exempt: step.exempt})
		if err != nil {
			t.Fatal(err)
		}
		before := g.writes
		g.want(s.Entries...).settle()
		if writes := g.writes - before; writes > 1 {
			t.Errorf("budget %s, users %q: %d writes", step.budget, step.exempt, writes)
		}
		for i := range s.Entries {
			s.Entries[i].ClientConfig.CABundle = []byte("ca")
		}
		if diff := cmp.Diff(s.Entries, g.Pods.Webhooks); diff != "" {
			t.Errorf("budget %s, users %q: entries (-want +got):\n%s", step.budget, step.exempt, diff)
		}
	}
}

package webhooks

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/internal/selection"
)

// The generated webhooks of all selected kinds are narrowed, and no others.
func TestSelect(t *testing.T) {
	text, err := os.ReadFile("../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(strings.TrimPrefix(string(text), "---\n"), "---\n")
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if len(documents) != 2 {
		t.Fatalf("%d documents", len(documents))
	}
	for i, into := range []any{&mutating, &validating} {
		if err := yaml.Unmarshal([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	own := metav1.LabelSelectorRequirement{Key: "own", Operator: metav1.LabelSelectorOpExists}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ObjectSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{own},
		}
	}
	other := metav1.LabelSelectorRequirement{Key: "b", Operator: metav1.LabelSelectorOpDoesNotExist}
	selector := metav1.LabelSelector{
		MatchLabels: map[string]string{"a": "1"}, MatchExpressions: []metav1.LabelSelectorRequirement{other},
	}
	if err := Select(&mutating, selector); err != nil {
		t.Error(err)
	}
	if err := Select(&validating, selector); err != nil {
		t.Error(err)
	}
	if err := Select(&corev1.Pod{}, selector); err == nil {
		t.Error("a pod is no configuration")
	}
	added := []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}, other,
	}
	narrowed := map[string]bool{}
	check := func(name string, rules []admissionregistrationv1.RuleWithOperations, got *metav1.LabelSelector,
		before ...metav1.LabelSelectorRequirement,
	) {
		t.Helper()
		var have []metav1.LabelSelectorRequirement
		if got != nil {
			have = got.MatchExpressions
		}
		resource, want := rules[0].Resources[0], before
		for _, kind := range selection.Kinds() {
			if strings.ToLower(kind.Kind)+"s" == resource && kind.Group == rules[0].APIGroups[0] {
				narrowed[resource], want = true, append(want, added...)
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, w := range mutating.Webhooks {
		check(w.Name, w.Rules, w.ObjectSelector)
	}
	for _, w := range validating.Webhooks {
		check(w.Name, w.Rules, w.ObjectSelector, own)
	}
	if len(narrowed) != len(selection.Kinds()) {
		t.Errorf("narrowed are those of %v", narrowed)
	}
}

package pub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/pub"
)

func decode(t *testing.T, text []byte) *object {
	t.Helper()
	o := &object{}
	if err := yaml.UnmarshalStrict(text, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		why        string
		object     *object
		operations []pub.Operation
		total      int32 // -1 for none
		selects    bool
		notes      int
	}{
		"nil":                   {"nothing is read", nil, nil, -1, false, 0},
		"empty":                 {"it guards no pod", &object{}, nil, -1, false, 1},
		"fields":                {"they are taken", newObject("web", protect(pub.Evict), protectTotal(3)), []pub.Operation{pub.Evict}, 3, true, 0},
		"annotations":           {"they are read where no conversion took place", newObject("web", func(b *object) { b.Annotations = older(" DELETE,, EVICT ", "15") }), []pub.Operation{pub.Delete, pub.Evict}, 15, true, 0},
		"both":                  {"fields come first", newObject("web", protect(pub.Evict), protectTotal(3), func(b *object) { b.Annotations = older("DELETE", "15") }), []pub.Operation{pub.Evict}, 3, true, 0},
		"malformed annotations": {"they are left out", newObject("web", func(b *object) { b.Annotations = older("BOGUS,UPDATE", "many") }), []pub.Operation{pub.Update}, -1, true, 2},
		"unknown operations":    {"they are left out, also where none is left", newObject("web", protect("DRAIN")), nil, -1, true, 1},
		"a total below zero":    {"it makes no sense", newObject("web", annotated("pub.kruise.io/protect-total-replicas", "-1")), nil, -1, true, 1},
		"a total of zero":       {"the user wants none", newObject("web", annotated("pub.kruise.io/protect-total-replicas", "0")), nil, 0, true, 0},
		"malformed selector": {"it selects nothing", newObject("web", func(b *object) {
			b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Gt"}}
		}), nil, -1, false, 1},
		"malformed ignored pods":   {"it ignores nothing", newObject("web", func(b *object) { b.Spec.IgnoredPodSelector = &metav1.LabelSelector{} }), nil, -1, true, 1},
		"a malformed amount":       {"it is left out", newObject("web", maxUnavailable("-3%")), nil, -1, true, 1},
		"a malformed target":       {"it guards no pod", newObject("web", targeted("", "")), nil, -1, false, 1},
		"a target with a selector": {"the target guards", newObject("web", func(b *object) { s := b.Spec.Selector; targeted("Deployment", "web")(b); b.Spec.Selector = s }), nil, -1, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, notes := pub.Read(c.object)
			if diff := cmp.Diff(c.operations, b.Operations); diff != "" {
				t.Errorf("%s: operations (-want +got):\n%s", c.why, diff)
			}
			total := int32(-1)
			if b.TotalReplicas != nil {
				total = *b.TotalReplicas
			}
			if total != c.total || b.Selects(map[string]string{"app": "web"}) != c.selects || len(notes) != c.notes || b.Ignores(map[string]string{"app": "web"}) {
				t.Errorf("%s: %+v, notes %v", c.why, b, notes)
			}
		})
	}
}

func older(operations, total string) map[string]string {
	return map[string]string{"kruise.io/pub-protect-operations": operations, "pub.kruise.io/protect-total-replicas": total}
}

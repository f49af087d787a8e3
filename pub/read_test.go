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
		"nil":   {"nothing is read", nil, nil, -1, false, 0},
		"empty": {"it guards no pod", &object{}, nil, -1, false, 1},
		"fields": {
			why:        "they are taken",
			object:     newObject("web", protect(pub.Evict), protectTotal(3)),
			operations: []pub.Operation{pub.Evict},
			total:      3,
			selects:    true,
		},
		"annotations": {
			why:        "they are read where no conversion took place",
			object:     newObject("web", func(b *object) { b.Annotations = older(" DELETE,, EVICT ", "15") }),
			operations: []pub.Operation{pub.Delete, pub.Evict},
			total:      15,
			selects:    true,
		},
		"both": {
			why: "fields come first",
			object: newObject("web", protect(pub.Evict), protectTotal(3), func(b *object) {
				b.Annotations = older("DELETE", "15")
			}),
			operations: []pub.Operation{pub.Evict},
			total:      3,
			selects:    true,
		},
		"malformed annotations": {
			why:        "they are left out",
			object:     newObject("web", func(b *object) { b.Annotations = older("BOGUS,UPDATE", "many") }),
			operations: []pub.Operation{pub.Update},
			total:      -1,
			selects:    true,
			notes:      2,
		},
		"unknown operations": {
			why:     "they are left out, also where none is left",
			object:  newObject("web", protect("DRAIN")),
			total:   -1,
			selects: true,
			notes:   1,
		},
		"a total below zero": {
			why:     "it makes no sense",
			object:  newObject("web", annotated("pub.kruise.io/protect-total-replicas", "-1")),
			total:   -1,
			selects: true,
			notes:   1,
		},
		"a total of zero": {
			why:     "the user wants none",
			object:  newObject("web", annotated("pub.kruise.io/protect-total-replicas", "0")),
			selects: true,
		},
		"malformed selector": {"it selects nothing", newObject("web", func(b *object) {
			b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Gt"}}
		}), nil, -1, false, 1},
		"malformed ignored pods": {
			why:     "it ignores nothing",
			object:  newObject("web", func(b *object) { b.Spec.IgnoredPodSelector = &metav1.LabelSelector{} }),
			total:   -1,
			selects: true,
			notes:   1,
		},
		"a malformed amount": {"it is left out", newObject("web", maxUnavailable("-3%")), nil, -1, true, 1},
		"a malformed target": {"it guards no pod", newObject("web", targeted("", "")), nil, -1, false, 1},
		"a target with a selector": {
			why: "the target guards",
			object: newObject("web", func(b *object) {
				s := b.Spec.Selector
				targeted("Deployment", "web")(b)
				b.Spec.Selector = s
			}),
			total: -1,
		},
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
			if total != c.total || b.Selects(map[string]string{"app": "web"}) != c.selects || len(notes) != c.notes ||
				b.Ignores(map[string]string{"app": "web"}) {
				t.Errorf("%s: %+v, notes %v", c.why, b, notes)
			}
		})
	}
}

func older(operations, total string) map[string]string {
	return map[string]string{"kruise.io/pub-protect-operations": operations, "pub.kruise.io/protect-total-replicas": total}
}

package scope_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// bounded is a WorkloadSpread of a CloneSet whose first subset has a limit.
func bounded(namespace, kind string, limits ...any) *unstructured.Unstructured {
	ws := workloadSpread(namespace, "s", "apps.kruise.io/v1beta1", kind, "web")
	var subsets []any
	for _, limit := range limits {
		s := map[string]any{"name": "a"}
		if limit != nil {
			s["maxReplicas"] = limit
		}
		subsets = append(subsets, s)
	}
	ws.Object["spec"].(map[string]any)["subsets"] = subsets
	return ws
}

// TestDepartures: deletions of pods that were spread are sent, at a path where nothing is refused, and once.
func TestDepartures(t *testing.T) {
	web := budget(t, "shop", "web", "{selector: {matchLabels: {app: web}}}")
	for name, c := range map[string]struct {
		why        string
		budgets    []*unstructured.Unstructured
		operations scope.Operations
		spreads    []*unstructured.Unstructured
		open       int
		notTaken   int
	}{
		"none": {why: "nothing is sent without a WorkloadSpread"},
		"without a limit": {
			why: "deletions open no place", spreads: []*unstructured.Unstructured{bounded("shop", "CloneSet", nil)},
		},
		"a StatefulSet": {
			why: "ordinals count nothing", spreads: []*unstructured.Unstructured{bounded("shop", "StatefulSet", int64(1))},
		},
		"a limit": {
			why:     "deletions and evictions open a place",
			spreads: []*unstructured.Unstructured{bounded("shop", "CloneSet", int64(1), nil)},
			open:    2,
		},
		"beside a budget": {
			why:        "what the budget reviews is recorded after its decision",
			spreads:    []*unstructured.Unstructured{bounded("shop", "CloneSet", "50%", nil)},
			budgets:    []*unstructured.Unstructured{web},
			operations: both(),
			open:       2,
			notTaken:   2,
		},
		"beside an update": {
			why:        "a budget of updates reviews no deletion",
			spreads:    []*unstructured.Unstructured{bounded("shop", "CloneSet", int64(1))},
			budgets:    []*unstructured.Unstructured{web},
			operations: scope.Operations{Updates: true},
			open:       2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := disruptions(t, c.operations, slices.Concat(c.spreads, c.budgets)...)
			open, notTaken := 0, 0
			for _, e := range s.Entries {
				if !strings.Contains(e.Name, "-open") {
					continue
				}
				open++
				if !scope.Ours(e.Name) || *e.FailurePolicy != admissionregistrationv1.Ignore ||
					!strings.HasSuffix(*e.ClientConfig.Service.Path, "-open") {
					t.Errorf("entry %+v", e)
				}
				for _, m := range e.MatchConditions {
					if m.Name == scope.NotTaken {
						notTaken++
					}
					if m.Name == scope.Selected && m.Expression != "request.namespace == 'shop'" {
						t.Errorf("condition %s", m.Expression)
					}
				}
			}
			if open != c.open || notTaken != c.notTaken {
				t.Errorf("%s: %d entries, %d with what is not taken", c.why, open, notTaken)
			}
		})
	}
}

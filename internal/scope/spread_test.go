package scope_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// workloadSpread has a target.
func workloadSpread(namespace, name, version, kind, of string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": target(version, kind, of),
	}}
}

func spreadScope(t *testing.T, all ...*unstructured.Unstructured) scope.Scope {
	t.Helper()
	in := input().Input
	in.Contributions = []scope.Contribution{scope.Spreads().Contribute(all)}
	s, err := scope.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSpreads: which pods WorkloadSpreads ask for. No pod waits for an answer.
func TestSpreads(t *testing.T) {
	const byOwner = "(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " +
		"has(o.controller) && o.controller && (request.namespace + '/' + o.kind + '/' + o.name) == 'shop/%s/web'))"
	deleted := workloadSpread("shop", "s", "apps/v1", "Job", "web")
	deleted.Object["metadata"] = map[string]any{
		"namespace": "shop", "name": "s", "deletionTimestamp": "2026-01-01T00:00:00Z",
	}
	for name, c := range map[string]struct {
		why   string
		all   []*unstructured.Unstructured
		wants []string
	}{
		"none":          {why: "nothing is sent"},
		"being deleted": {why: "it spreads no new pod", all: []*unstructured.Unstructured{deleted}},
		"without a target": {
			why: "it spreads no pod",
			all: []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{
				"namespace": "shop", "name": "s",
			}}}},
		},
		"a CloneSet": {
			"pods of the target are sent",
			[]*unstructured.Unstructured{workloadSpread("shop", "s", "apps.kruise.io/v1alpha1", "CloneSet", "web")},
			[]string{fmt.Sprintf(byOwner, "CloneSet")},
		},
		"a Deployment": {
			"its ReplicaSets are named after it, or are asked for by the namespace",
			[]*unstructured.Unstructured{workloadSpread("shop", "s", "apps/v1", "Deployment", "web")},
			[]string{
				"(request.namespace + '/' + o.name.substring(0, size(o.name) - size(l['pod-template-hash']) - 1)) == 'shop/web'",
				"!o.name.endsWith('-' + l['pod-template-hash'])) && request.namespace == 'shop')",
			},
		},
		"another kind": {
			"it may be above the controller of the pods",
			[]*unstructured.Unstructured{workloadSpread("shop", "s", "example.com/v1", "Game", "web")},
			[]string{"request.namespace == 'shop'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := spreadScope(t, c.all...)
			if len(s.Notes) > 0 || len(s.Entries) != min(len(c.wants), 1) {
				t.Fatalf("%s: %d entries, notes %v", c.why, len(s.Entries), s.Notes)
			}
			for _, e := range s.Entries {
				if *e.FailurePolicy != admissionregistrationv1.Ignore ||
					*e.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun || !scope.Ours(e.Name) {
					t.Errorf("entry %+v", e)
				}
				for _, want := range c.wants {
					if !strings.Contains(e.MatchConditions[0].Expression, want) {
						t.Errorf("%s: condition %s, want %s", c.why, e.MatchConditions[0].Expression, want)
					}
				}
			}
		})
	}
}

// TestSpreadsBounded: one namespace cannot take up the room of the others.
func TestSpreadsBounded(t *testing.T) {
	all := []*unstructured.Unstructured{workloadSpread("shop", "s", "apps.kruise.io/v1beta1", "CloneSet", "web")}
	for i := range 5000 {
		all = append(all, workloadSpread("hostile", fmt.Sprint("s-", i), "apps/v1", "StatefulSet",
			fmt.Sprintf("n-%d-%s", i, strings.Repeat("x", 200))))
	}
	s := spreadScope(t, all...)
	if len(s.Entries) != 1 || len(s.Notes) > 0 || s.Entries[0].Size() > 4<<10 {
		t.Fatalf("%d entries, notes %v", len(s.Entries), s.Notes)
	}
	for _, want := range []string{"request.namespace == 'hostile'", "'shop/CloneSet/web'"} {
		if text := s.Entries[0].MatchConditions[0].Expression; !strings.Contains(text, want) {
			t.Errorf("condition %s, want %s", text, want)
		}
	}
}

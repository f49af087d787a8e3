package scope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/pub"
)

func budget(t testing.TB, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	b := &unstructured.Unstructured{}
	text := fmt.Sprintf(
		"apiVersion: policy.kruise.io/v1beta1\nkind: PodUnavailableBudget\nmetadata: {namespace: %s, name: %s}\nspec: %s",
		namespace, name, spec)
	if err := yaml.Unmarshal([]byte(text), &b.Object); err != nil {
		t.Fatal(err)
	}
	return b
}

// raw is a budget without the detour of a text.
func raw(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

func target(version, kind, name string) map[string]any {
	return map[string]any{"targetRef": map[string]any{"apiVersion": version, "kind": kind, "name": name}}
}

func disruptions(t testing.TB, o scope.Operations, objects ...*unstructured.Unstructured) scope.Scope {
	t.Helper()
	in := input().Input
	for _, s := range scope.DisruptionSources(false) {
		in.Contributions = append(in.Contributions,
			s.Contribute(slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
				return o.GetKind() != s.Kind.Kind
			})))
	}
	s, err := scope.Disruptions(in, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func both() scope.Operations { return scope.Operations{Deletes: true, Updates: true} }

// TestDisruptions: which entries budgets ask for.
func TestDisruptions(t *testing.T) {
	web := budget(t, "shop", "web", "{selector: {matchLabels: {app: web}}}")
	for name, c := range map[string]struct {
		why        string
		budgets    []*unstructured.Unstructured
		operations scope.Operations
		names      []string
		// rules of the first entry, and part of its condition.
		rules, selected string
	}{
		"none": {why: "nothing is sent without a budget", operations: both()},
		"off":  {why: "nothing is sent for no operation", budgets: []*unstructured.Unstructured{web}},
		"unreadable": {
			why:        "a budget that guards no pod sends nothing",
			operations: both(),
			budgets:    []*unstructured.Unstructured{budget(t, "shop", "a", "{selector: {}}"), budget(t, "shop", "b", "{}")},
		},
		"selector": {
			why:        "the selector and the namespace are asked of the stored pod",
			operations: both(),
			budgets:    []*unstructured.Unstructured{web},
			names:      []string{"vpod.kb.io", "vpodeviction.kb.io"},
			rules:      "UPDATE,DELETE pods; UPDATE pods/resize",
			selected:   `[has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}].exists(l, ((request.namespace == 'shop') && 'app' in l && l['app'] == 'web'))`,
		},
		"deletes": {
			why:        "updates are not sent",
			operations: scope.Operations{Deletes: true},
			budgets:    []*unstructured.Unstructured{web},
			names:      []string{"vpod.kb.io", "vpodeviction.kb.io"},
			rules:      "DELETE pods",
		},
		"updates": {
			why:        "evictions are not sent",
			operations: scope.Operations{Updates: true},
			budgets:    []*unstructured.Unstructured{web},
			names:      []string{"vpod.kb.io"},
			rules:      "UPDATE pods; UPDATE pods/resize",
		},
		"target": {
			why:        "a target is asked of the owner and of the stamp",
			operations: both(),
			names:      []string{"vpod.kb.io", "vpodeviction.kb.io"},
			budgets: []*unstructured.Unstructured{
				budget(t, "shop", "b", "{targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}"),
			},
			rules:    "UPDATE,DELETE pods; UPDATE pods/resize",
			selected: "(request.namespace + '/' + o.kind + '/' + o.name) == 'shop/CloneSet/web'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := disruptions(t, c.operations, c.budgets...)
			var names []string
			for _, e := range s.Entries {
				names = append(names, e.Name)
				if !scope.Ours(e.Name) || *e.FailurePolicy != admissionregistrationv1.Fail ||
					*e.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
					t.Errorf("entry %+v", e)
				}
			}
			if !slices.Equal(names, c.names) || len(s.Notes) > 0 {
				t.Fatalf("%s: entries %q, notes %v", c.why, names, s.Notes)
			}
			if len(names) == 0 {
				return
			}
			var rules []string
			for _, r := range s.Entries[0].Rules {
				var operations []string
				for _, o := range r.Operations {
					operations = append(operations, string(o))
				}
				rules = append(rules, strings.Join(operations, ",")+" "+strings.Join(r.Resources, ","))
			}
			if got := strings.Join(rules, "; "); got != c.rules ||
				!strings.Contains(s.Entries[0].MatchConditions[1].Expression, c.selected) {
				t.Errorf("%s: rules %q, condition %s", c.why, got, s.Entries[0].MatchConditions[1].Expression)
			}
		})
	}
}

// TestDisruptionsExempt: requests of exempt users are sent to a path where nothing is refused, and are admitted while
// no replica answers.
func TestDisruptionsExempt(t *testing.T) {
	web := budget(t, "shop", "web", "{selector: {matchLabels: {app: web}}}")
	const of = `request.userInfo.username in ['it\'s','system:kube-scheduler']`
	for name, c := range map[string]struct {
		why           string
		operations    scope.Operations
		closed, spare []string
	}{
		"nobody": {
			why: "all users wait for an answer", operations: both(), closed: []string{"vpod.kb.io", "vpodeviction.kb.io"},
		},
		"users": {
			why:        "each entry has one beside it",
			operations: scope.Operations{Deletes: true, Updates: true, Exempt: []string{"system:kube-scheduler", "it's"}},
			closed:     []string{"vpod.kb.io", "vpodeviction.kb.io"},
			spare:      []string{"vpod-exempt.kb.io", "vpodeviction-exempt.kb.io"},
		},
		"updates": {
			why:        "evictions are not sent",
			operations: scope.Operations{Updates: true, Exempt: []string{"system:kube-scheduler", "it's"}},
			closed:     []string{"vpod.kb.io"},
			spare:      []string{"vpod-exempt.kb.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var closed, spare []string
			s := disruptions(t, c.operations, web)
			for i := range s.Entries {
				e := &s.Entries[i]
				users := ""
				for _, m := range e.MatchConditions {
					if m.Name == scope.User {
						users = m.Expression
					}
				}
				path, rest := *e.ClientConfig.Service.Path, strings.Replace(e.Name, "-exempt", "", 1)
				if rest == e.Name {
					closed = append(closed, e.Name)
					if *e.FailurePolicy != admissionregistrationv1.Fail || strings.HasSuffix(path, "-open") ||
						(users == "!("+of+")") != (len(c.spare) > 0) {
						t.Errorf("%s: entry %+v", c.why, e)
					}
					continue
				}
				spare = append(spare, e.Name)
				if !scope.Ours(e.Name) || *e.FailurePolicy != admissionregistrationv1.Ignore || !strings.HasSuffix(path, "-open") ||
					users != of {
					t.Errorf("%s: entry %+v", c.why, e)
				}
				at := slices.IndexFunc(s.Entries, func(other admissionregistrationv1.MutatingWebhook) bool {
					return other.Name == rest
				})
				if at < 0 ||
					!slices.EqualFunc(e.Rules, s.Entries[at].Rules, func(a, b admissionregistrationv1.RuleWithOperations) bool {
						return slices.Equal(a.Operations, b.Operations) && slices.Equal(a.Resources, b.Resources)
					}) || len(e.MatchConditions) != len(s.Entries[at].MatchConditions) {
					t.Errorf("%s: %s sends other requests than %s", c.why, e.Name, rest)
				}
			}
			if !slices.Equal(closed, c.closed) || !slices.Equal(spare, c.spare) {
				t.Errorf("%s: entries %q and %q", c.why, closed, spare)
			}
		})
	}
}

// TestDisruptionsBounded: budgets without end of one namespace send its pods as a whole, and leave the entries of
// others exact.
func TestDisruptionsBounded(t *testing.T) {
	quiet := budget(t, "shop", "web", "{selector: {matchLabels: {app: web}}}")
	long := strings.Repeat("x", 60)
	for name, spec := range map[string]func(int) map[string]any{
		"selectors": func(i int) map[string]any {
			return map[string]any{"selector": map[string]any{"matchExpressions": []any{
				map[string]any{"key": "app", "operator": "NotIn", "values": []any{fmt.Sprintf("n%d", i), long}},
			}}}
		},
		"targets": func(i int) map[string]any { return target("v1", "K"+long, fmt.Sprintf("n-%d-%s", i, long)) },
	} {
		t.Run(name, func(t *testing.T) {
			all := []*unstructured.Unstructured{quiet}
			for i := range 5000 {
				all = append(all, raw("hostile", fmt.Sprintf("b-%d", i), spec(i)))
			}
			s := disruptions(t, both(), all...)
			size := 0
			for _, e := range s.Entries {
				size += e.Size()
			}
			selected := s.Entries[0].MatchConditions[1].Expression
			if len(s.Entries) != 2 || size > 10<<10 || len(s.Notes) > 0 {
				t.Errorf("%d entries of %d bytes, notes %v", len(s.Entries), size, s.Notes)
			}
			if !strings.Contains(selected, "'app' in l && l['app'] == 'web'") ||
				!strings.Contains(selected, "request.namespace == 'hostile'") {
				t.Errorf("condition %s", selected)
			}
		})
	}
}

// TestDisruptionsMany: budgets of many namespaces fit into one object, exact as long as they do.
func TestDisruptionsMany(t *testing.T) {
	for _, namespaces := range []int{100, 2000, 15000} {
		var all []*unstructured.Unstructured
		for i := range namespaces {
			namespace := fmt.Sprintf("namespace-%d", i)
			all = append(all, raw(namespace, "a", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{
				"app": fmt.Sprintf("web-%d", i),
			}}}), raw(namespace, "b", target("apps/v1", "Deployment", "api")))
		}
		o := both()
		o.Exempt = pub.SystemUsers()
		s := disruptions(t, o, all...)
		size := 0
		for _, e := range s.Entries {
			size += e.Size()
			for _, c := range e.MatchConditions {
				if len(c.Expression) > 48<<10 {
					t.Errorf("an expression has %d letters", len(c.Expression))
				}
			}
		}
		t.Logf("%d namespaces with 2 budgets each: %d entries, %d KiB, notes %v",
			namespaces, len(s.Entries), size>>10, s.Notes)
		if s.Entries[0].MatchConditions[1].Expression == "true" {
			t.Errorf("%d namespaces: pods of all namespaces are sent", namespaces)
		}
		if size > 1<<20 || len(s.Entries) > 64 || (len(s.Notes) > 0) != (namespaces > 10000) {
			t.Errorf("%d namespaces: %d entries of %d bytes, notes %v", namespaces, len(s.Entries), size, s.Notes)
		}
	}
}

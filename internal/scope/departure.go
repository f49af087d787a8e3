package scope

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// departs holds for deletions of active pods that a WorkloadSpread has spread.
const departs = `!has(oldObject.metadata.deletionTimestamp) && has(oldObject.metadata.annotations) && ` +
	`'` + kruise.MatchedWorkloadSpreadKey + `' in oldObject.metadata.annotations && ` +
	`!(has(oldObject.status.phase) && oldObject.status.phase in ['Succeeded', 'Failed'])`

// departures returns the namespaces whose deletions and evictions WorkloadSpreads count.
func departures(spreads []*unstructured.Unstructured) Contribution {
	var namespaces []string
	for _, raw := range spreads {
		ws, _, err := stored.Decode[appsv1beta1.WorkloadSpread](raw)
		if err == nil && ws.DeletionTimestamp == nil && counts(ws) {
			namespaces = append(namespaces, ws.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return Contribution{}
	}
	return Contribution{Lists: []List{{Value: "request.namespace", Of: sorted(namespaces), Ignore: true}}}
}

// departed adds the entries of deletions and evictions that only WorkloadSpreads concern to those of budgets. They are
// ignored while no replica answers. Sent are deletions of pods that were spread, and evictions in their namespaces.
func departed(in Input, of Scope) Scope {
	namespaces := namespacesOf(in.Contributions, true)
	if len(namespaces) == 0 {
		return of
	}
	w := &writer{letters: mostLetters / 4}
	w.list(list{value: "request.namespace", of: namespaces})
	selected := always
	if all := w.done(); len(all) == 1 {
		selected = strings.Join(all[0], " || ")
	}
	deletion, eviction := disruptionFrame(in, true, "vpod-open"+nameEnd), disruptionFrame(in, true,
		"vpodeviction-open"+nameEnd)
	deletion.MatchConditions = append([]admissionregistrationv1.MatchCondition{
		{Name: Disrupts, Expression: departs}, {Name: Selected, Expression: selected},
	}, notTaken(of, "vpod")...)
	deletion.Rules = []admissionregistrationv1.RuleWithOperations{podRule("pods", admissionregistrationv1.Delete)}
	eviction.MatchConditions = append([]admissionregistrationv1.MatchCondition{{Name: Selected, Expression: selected}},
		notTaken(of, "vpodeviction")...)
	eviction.Rules = []admissionregistrationv1.RuleWithOperations{podRule("pods/eviction", admissionregistrationv1.Create)}
	of.Entries = append(slices.Clone(of.Entries), *deletion, *eviction)
	return of
}

// counts reports whether deletions change what a WorkloadSpread counts: ordinals count nothing, and a subset without a
// limit has no places.
func counts(ws *appsv1beta1.WorkloadSpread) bool {
	return ws.Spec.TargetReference != nil && ws.Spec.TargetReference.Kind != "StatefulSet" &&
		slices.ContainsFunc(ws.Spec.Subsets, func(s appsv1beta1.WorkloadSpreadSubset) bool { return s.MaxReplicas != nil })
}

// notTaken excludes the requests of the only entry of a name that fails closed, whose review records them after the
// decision. The requests of several entries are recorded at both paths, once.
func notTaken(of Scope, name string) []admissionregistrationv1.MatchCondition {
	var conditions []admissionregistrationv1.MatchCondition
	found := 0
	for i := range of.Entries {
		e := &of.Entries[i]
		if e.Name != name+nameEnd && !strings.HasPrefix(e.Name, name+"-part-") || !deletes(e) {
			continue
		}
		found++
		all := make([]string, len(e.MatchConditions))
		for j, c := range e.MatchConditions {
			all[j] = "(" + c.Expression + ")"
		}
		conditions = []admissionregistrationv1.MatchCondition{{
			Name: NotTaken, Expression: "!(" + strings.Join(all, " && ") + ")",
		}}
	}
	if found != 1 {
		return nil
	}
	return conditions
}

// deletes reports whether an entry is about deletions or evictions.
func deletes(e *admissionregistrationv1.MutatingWebhook) bool {
	return slices.ContainsFunc(e.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.Operations, admissionregistrationv1.Delete) ||
			slices.Contains(r.Operations, admissionregistrationv1.Create)
	})
}

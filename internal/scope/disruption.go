package scope

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// Disrupts is the match condition of requests that can make an available pod unavailable.
	Disrupts = "kruisekit.dev/disrupts"
	// User is the match condition of requests of exempt users, or of all other users.
	User = "kruisekit.dev/user"
)

// Operations are which disruptions are reviewed.
type Operations struct {
	// Deletes are deletions and evictions, Updates updates in place and resizes.
	Deletes, Updates bool
	// Exempt are the users that no budget refuses.
	Exempt []string
}

// DisruptionSources returns the sources of the entries of disruptions: of budgets, and of WorkloadSpreads unless
// noSpreads. What spreads contribute is ignored while no replica answers.
func DisruptionSources(noSpreads bool) []Source {
	all := []Source{{
		Step: "budget", Kind: BudgetKind(), Contribute: func(objects []*unstructured.Unstructured) Contribution {
			g := guardedOf(objects)
			c := g.contribution("oldObject")
			c.Lists = append(c.Lists, g.stamped("oldObject")...)
			return c
		},
	}}
	if !noSpreads {
		all = append(all, Source{Step: "spread", Kind: SpreadKind(), Contribute: departures})
	}
	return all
}

// Disruptions returns which requests about pods that exist API servers send, for the contributions of
// DisruptionSources: the entries of a ValidatingWebhookConfiguration, in the form of the entries that Plan returns.
// Those of budgets fail closed, but for those of exempt users, whose requests are sent to the path that refuses
// nothing.
//
// Sent are requests about available pods under a budget: deletions, and updates that change the spec or what the spec
// refers to. Not sent are requests about pods that are terminating, not ready or exempt, and updates of a status. An
// Eviction carries neither the labels nor the status of its pod: those in a namespace with a budget are sent. Of spread
// pods, deletions and the evictions of their namespaces are sent.
func Disruptions(in Input, o Operations) (Scope, error) {
	if err := in.check(); err != nil {
		return Scope{}, err
	}
	return departed(in, guarding(in, o)), nil
}

// guarding returns the entries of budgets.
func guarding(in Input, o Operations) Scope {
	namespaces := namespacesOf(in.Contributions, false)
	if len(namespaces) == 0 || !o.Deletes && !o.Updates {
		return Scope{}
	}
	var notes []note.Note
	groups := map[string]*group{"": {}}
	for _, c := range in.Contributions {
		groups[""].add(c)
		for i := range c.Selections {
			notes = append(notes, file(groups, &c.Selections[i])...)
		}
	}
	forms := groups[""].closedForms()
	var s Scope
	for _, b := range sizes() {
		s = Scope{Notes: notes}
		selected, widened := within(forms, b)
		if widened {
			s.Notes = append(s.Notes, newNote(NoteWidened, "vpod"+nameEnd,
				"the budgets ask for more than fits into its conditions: pods that no budget guards are sent, too"))
		}
		for part, expression := range selected {
			s.Entries = append(s.Entries, disruptionEntry(in, part, expression, o))
		}
		if o.Deletes {
			s.Entries = append(s.Entries, evictionEntries(in, namespaces, b)...)
		}
		if s = s.exempting(o.Exempt); s.fits() {
			break
		}
	}
	return s
}

// namespacesOf returns the namespaces of what is contributed, fail closed or ignored.
func namespacesOf(all []Contribution, ignore bool) []string {
	var namespaces []string
	for _, c := range all {
		for i := range c.Selections {
			if c.Selections[i].Ignore == ignore {
				namespaces = append(namespaces, c.Selections[i].In)
			}
		}
		for _, l := range c.Lists {
			for _, value := range l.Of {
				if l.Ignore == ignore {
					namespaces = append(namespaces, NamespaceOf(value))
				}
			}
		}
	}
	return sorted(namespaces)
}

// disruptionEntry is the entry of deletions and updates.
func disruptionEntry(in Input, part int, selected string, o Operations) admissionregistrationv1.MutatingWebhook {
	e := disruptionFrame(in, false, "vpod"+partSuffix(part)+nameEnd)
	if rest, is := strings.CutPrefix(selected, head); is {
		selected = strings.ReplaceAll(head, "object.", "oldObject.") + rest
	}
	e.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: Disrupts, Expression: disrupts}, {Name: Selected, Expression: selected},
	}
	var operations []admissionregistrationv1.OperationType
	if o.Updates {
		operations = append(operations, admissionregistrationv1.Update)
	}
	if o.Deletes {
		operations = append(operations, admissionregistrationv1.Delete)
	}
	e.Rules = []admissionregistrationv1.RuleWithOperations{podRule("pods", operations...)}
	if o.Updates {
		e.Rules = append(e.Rules, podRule("pods/resize", admissionregistrationv1.Update))
	}
	return *e
}

// evictionEntries are those of evictions in namespaces.
func evictionEntries(in Input, namespaces []string, b size) []admissionregistrationv1.MutatingWebhook {
	w := &writer{letters: b.letters}
	w.list(list{value: "request.namespace", of: namespaces})
	all := w.done()
	if len(all) > b.parts {
		all = [][]string{{always}}
	}
	var entries []admissionregistrationv1.MutatingWebhook
	for part, operands := range all {
		e := disruptionFrame(in, false, "vpodeviction"+partSuffix(part)+nameEnd)
		e.MatchConditions = []admissionregistrationv1.MatchCondition{{
			Name: Selected, Expression: strings.Join(operands, " || "),
		}}
		e.Rules = []admissionregistrationv1.RuleWithOperations{podRule("pods/eviction", admissionregistrationv1.Create)}
		entries = append(entries, *e)
	}
	return entries
}

// disruptionFrame is an entry without rules and conditions.
func disruptionFrame(in Input, ignore bool, name string) *admissionregistrationv1.MutatingWebhook {
	e := frame(in, ignore)
	e.Name, e.ReinvocationPolicy = name, nil
	return e
}

func podRule(
	resource string, operations ...admissionregistrationv1.OperationType,
) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups:   []string{corev1.GroupName},
		APIVersions: []string{"v1"},
		Resources:   []string{resource},
		Scope:       ptr.To(admissionregistrationv1.NamespacedScope),
	}}
}

// disrupts holds for requests about an available pod that the budget may concern. It is wider than package pub where
// pub reads more than the request.
const disrupts = `!has(oldObject.metadata.deletionTimestamp) && has(oldObject.status.phase) && oldObject.status.phase == 'Running' && ` +
	`has(oldObject.status.conditions) && oldObject.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True') && ` +
	`!(has(oldObject.metadata.labels) && oldObject.metadata.labels.exists(k, k.startsWith('` +
	kruise.PubUnavailablePodLabelPrefix + `'))) && ` +
	`!(has(oldObject.metadata.annotations) && '` + kruise.PodPubNoProtectionKey +
	`' in oldObject.metadata.annotations && ` +
	`oldObject.metadata.annotations['` + kruise.PodPubNoProtectionKey +
	`'] in ['1', 't', 'T', 'true', 'TRUE', 'True']) && ` +
	`(request.operation == 'DELETE' || object.spec != oldObject.spec || ` +
	`(has(object.metadata.labels) && object.metadata.labels.exists(k, k.startsWith('` +
	kruise.PubUnavailablePodLabelPrefix + `'))) || ` +
	`oldObject.spec.containers.exists(c, has(c.env) && c.env.exists(e, has(e.valueFrom) && has(e.valueFrom.fieldRef) && ` +
	`e.valueFrom.fieldRef.fieldPath.startsWith('metadata.'))))`

package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/note"
)

const (
	// Selected is the match condition of the pods that an entry selects.
	Selected = "kruisekit.dev/selected"
	// NotTaken is the match condition that excludes the pods of another entry.
	NotTaken = "kruisekit.dev/not-taken"

	// closedSeconds is the default of the reference: the longest wait for a rejection.
	closedSeconds = 10
	// openSeconds is shorter, because these pods do not depend on an answer.
	openSeconds = 3
)

// group is the selections that ask the same of the labels of namespaces.
type group struct {
	namespaces   []metav1.LabelSelectorRequirement
	closed, open []clause
	// closedIf and openIf are further alternatives, in CEL.
	closedIf, openIf []string
	// closedLists and openLists are alternatives, too.
	closedLists, openLists []List
}

// add adds what depends on no label of a namespace.
func (g *group) add(of Contribution) {
	for i := range of.Lists {
		if of.Lists[i].Ignore {
			g.openLists = append(g.openLists, of.Lists[i])
		} else {
			g.closedLists = append(g.closedLists, of.Lists[i])
		}
	}
	for _, c := range of.Conditions {
		if c.Ignore {
			g.openIf = append(g.openIf, c.Expression)
		} else {
			g.closedIf = append(g.closedIf, c.Expression)
		}
	}
}

// closedForms and openForms are the conditions of the entries that fail closed, and of those that are ignored.
func (g *group) closedForms() []form { return formsOf(g.closed, g.closedIf, g.closedLists) }
func (g *group) openForms() []form   { return formsOf(g.open, g.openIf, g.openLists) }

// bounded merges the groups beyond mostGroups into that of all namespaces, and those that ask too much of the labels of
// namespaces.
func bounded(groups map[string]*group) []note.Note {
	var notes []note.Note
	few, long := 0, 0
	for _, id := range ids(groups) {
		switch {
		case id == "":
		case len(id) > mostNamespaceLetters:
			long++
			groups[""].take(groups[id])
			delete(groups, id)
		case few == mostGroups:
			groups[""].take(groups[id])
			delete(groups, id)
			if len(notes) == 0 {
				notes = append(notes, newNote(NoteWidened, closedName("", 0), fmt.Sprintf(
					"pods of all namespaces are sent for sets of further namespaceSelectors: at most %d have entries of their own",
					mostGroups)))
			}
		default:
			few++
		}
	}
	if long > 0 {
		notes = append(notes, newNote(NoteWidened, closedName("", 0), fmt.Sprintf(
			"pods of all namespaces are sent for sets of %d namespaceSelectors that are too long", long)))
	}
	return notes
}

// take adds the clauses of another group.
func (g *group) take(other *group) {
	g.closed, g.open = append(g.closed, other.closed...), append(g.open, other.open...)
}

// ids returns the keys of the groups, that of all namespaces first.
func ids(groups map[string]*group) []string { return slices.Sorted(maps.Keys(groups)) }

// conditions of a group: those of the entries that fail closed, and of those that are ignored.
type conditions struct {
	closed, open               []string
	closedWidened, openWidened bool
	// ignore asks for the entries that are ignored.
	ignore bool
}

// entries returns the group's entries, closed or open; none if they select no pod.
func (g *group) entries(
	in Input, id string, of conditions,
) (entries []admissionregistrationv1.MutatingWebhook, notes []note.Note) {
	selected, widened, name := of.closed, of.closedWidened, closedName
	if of.ignore {
		selected, widened, name = of.open, of.openWidened, openName
	}
	for part, expression := range selected {
		e := frame(in, of.ignore)
		e.Name = name(id, part)
		e.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: Selected, Expression: expression}}
		if of.ignore && len(of.closed) == 1 {
			e.MatchConditions = append(e.MatchConditions, admissionregistrationv1.MatchCondition{
				Name: NotTaken, Expression: "!(" + of.closed[0] + ")",
			})
		}
		e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions, g.namespaces...)
		entries = append(entries, *e)
	}
	if widened {
		notes = append(notes, newNote(NoteWidened, name(id, 0),
			"its sets ask for more than fits into its conditions: pods are sent that have only some of the labels"))
	}
	return entries, notes
}

// frame returns an entry without name and conditions, for all pods that are not spared.
func frame(in Input, ignore bool) *admissionregistrationv1.MutatingWebhook {
	policy, seconds, suffix := admissionregistrationv1.Fail, int32(closedSeconds), ""
	if ignore {
		policy, seconds, suffix = admissionregistrationv1.Ignore, openSeconds, openSuffix
	}
	return &admissionregistrationv1.MutatingWebhook{
		ClientConfig:  onward(in.Client, suffix),
		FailurePolicy: &policy,
		MatchPolicy:   ptr.To(admissionregistrationv1.Equivalent),
		// What later webhooks add does not concern the steps; the reference is not called again either.
		ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
		// The places that subsets give to pods are recorded, unless the request is a dry run.
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          &seconds,
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
		NamespaceSelector:       &metav1.LabelSelector{MatchExpressions: spared(in.Namespace)},
		ObjectSelector:          &metav1.LabelSelector{},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{corev1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
				Scope: ptr.To(admissionregistrationv1.NamespacedScope),
			},
		}},
	}
}

// openSuffix makes the path of pods that may be created without an answer: a rejection would count there too.
const openSuffix = "-open"

// onward returns a client whose path ends in a suffix.
func onward(c admissionregistrationv1.WebhookClientConfig, suffix string) admissionregistrationv1.WebhookClientConfig {
	c = *c.DeepCopy()
	switch {
	case suffix == "":
	case c.Service != nil:
		c.Service.Path = ptr.To(ptr.Deref(c.Service.Path, "") + suffix)
	case c.URL != nil:
		c.URL = ptr.To(*c.URL + suffix)
	}
	return c
}

// spared excludes the namespaces whose pods must never wait for the webhook.
func spared(own string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{
		{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		{
			Key:      corev1.LabelMetadataName,
			Operator: metav1.LabelSelectorOpNotIn,
			Values:   sorted([]string{metav1.NamespaceSystem, own}),
		},
	}
}

// The names of entries. The first is that of the reference. Conditions that are too long for one entry continue in
// further parts.
func closedName(id string, part int) string { return "mpod" + suffix(id) + partSuffix(part) + ".kb.io" }

func openName(id string, part int) string {
	return "mpod-open" + suffix(id) + partSuffix(part) + ".kb.io"
}

func partSuffix(part int) string {
	if part == 0 {
		return ""
	}
	return "-part-" + strconv.Itoa(part+1)
}

// suffix is short, because the names of entries are in metrics and errors.
func suffix(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return "-" + hex.EncodeToString(sum[:4])
}

// ours matches the names of entries.
var ours = regexp.MustCompile(
	`^(mpod(-open)?(-[0-9a-f]{8})?|(vpod|vpodeviction)(-open|-exempt)?)(-part-[0-9]{1,2})?\.kb\.io$`)

// Ours reports whether an entry has a name as Plan, Disruptions or Provisional give them.
func Ours(name string) bool { return ours.MatchString(name) || IsProvisional(name) }

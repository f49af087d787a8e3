package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

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

	// mostLetters of an expression: API servers accept 100,000, and compile this many in a tenth of a second, for which the first pod
	// after each change waits.
	mostLetters = 48 << 10
	// mostClauses beside those in lists. API servers compile so many in a few hundredths of a second, and twenty times as many in
	// several seconds.
	mostClauses = 64
	// mostGroups is how many sets of namespace labels have entries of their own. API servers evaluate each entry for every new pod.
	mostGroups = 24
)

// group is the selections that ask the same of the labels of namespaces.
type group struct {
	namespaces   []metav1.LabelSelectorRequirement
	closed, open []clause
	// closedIf and openIf are further alternatives, in CEL.
	closedIf, openIf []string
}

func (g *group) add(conditions []Condition) {
	for _, c := range conditions {
		if c.Ignore {
			g.openIf = append(g.openIf, c.Expression)
		} else {
			g.closedIf = append(g.closedIf, c.Expression)
		}
	}
}

// bounded merges the groups beyond mostGroups into that of all namespaces.
func bounded(groups map[string]*group) []note.Note {
	all := ids(groups)
	if len(all) <= mostGroups+1 {
		return nil
	}
	for _, id := range all[mostGroups+1:] {
		groups[""].closed = append(groups[""].closed, groups[id].closed...)
		groups[""].open = append(groups[""].open, groups[id].open...)
		delete(groups, id)
	}
	return []note.Note{newNote(NoteWidened, closedName(""), fmt.Sprintf(
		"pods of all namespaces are sent for sets of %d different namespaceSelectors: at most %d have entries of their own", len(all)-1-mostGroups, mostGroups))}
}

// ids returns the keys of the groups, that of all namespaces first.
func ids(groups map[string]*group) []string { return slices.Sorted(maps.Keys(groups)) }

// entry returns the group's entry, closed or open; nil if it selects no pod.
func (g *group) entry(in Input, id string, ignore bool) (*admissionregistrationv1.MutatingWebhook, []note.Note) {
	closed, widened := anyOf(g.closed, g.closedIf)
	name := closedName(id)
	conditions := []admissionregistrationv1.MatchCondition{{Name: Selected, Expression: closed}}
	if ignore {
		var open string
		open, widened = anyOf(g.open, g.openIf)
		name = openName(id)
		conditions[0].Expression = open
		if closed != "" {
			conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: NotTaken, Expression: "!(" + closed + ")"})
		}
	}
	if conditions[0].Expression == "" {
		return nil, nil
	}
	var notes []note.Note
	if widened {
		notes = append(notes, newNote(NoteWidened, name, "its sets ask for more than fits into one condition: pods are sent that have only some of the labels"))
	}
	e := frame(in, ignore)
	e.Name, e.MatchConditions = name, conditions
	e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions, g.namespaces...)
	return e, notes
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
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
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
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: sorted([]string{metav1.NamespaceSystem, own})},
	}
}

// anyOf returns a condition for pods that a clause selects, or for which one of the others holds. A condition that would be too long
// is widened.
func anyOf(clauses []clause, others []string) (expression string, widened bool) {
	sets, widened := condition(merged(clauses))
	if sets == always {
		return sets, widened
	}
	var parts []string
	for _, p := range slices.Concat([]string{sets}, others) {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " || "), widened
}

// The names of entries. The first is that of the reference.
func closedName(id string) string { return "mpod" + suffix(id) + ".kb.io" }

func openName(id string) string { return "mpod-open" + suffix(id) + ".kb.io" }

// suffix is short, because the names of entries are in metrics and errors.
func suffix(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return "-" + hex.EncodeToString(sum[:4])
}

// Ours reports whether an entry has a name as Compute or Provisional give them.
func Ours(name string) bool {
	if IsProvisional(name) {
		return true
	}
	id, first := strings.CutPrefix(name, "mpod")
	id, last := strings.CutSuffix(id, ".kb.io")
	id = strings.TrimPrefix(id, "-open")
	if !first || !last || id == "" {
		return first && last
	}
	hash, dashed := strings.CutPrefix(id, "-")
	raw, err := hex.DecodeString(hash)
	return dashed && err == nil && len(raw) == 4
}

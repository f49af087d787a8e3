package scope

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/note"
)

// The codes of notes.
const (
	// NoteUnreadable is a set whose selectors cannot be read, or only in part.
	NoteUnreadable = "SelectorUnreadable"
	// NoteWidened is an entry for more pods than are concerned, because an exact entry is larger than a bound.
	NoteWidened = "ScopeWidened"
)

const (
	// maxGroups is how many namespaceSelectors have entries of their own, with that of all namespaces. API servers
	// evaluate each entry for every new pod.
	maxGroups = 16
	// maxBytes of all entries: etcd accepts 1.5 MiB for an object.
	maxBytes = 1 << 20
)

// Input is the contributions of the steps, and how API servers reach the webhook.
type Input struct {
	// Client is how API servers reach the webhook.
	Client admissionregistrationv1.WebhookClientConfig
	// Namespace is the webhook's own.
	Namespace string
	// Contributions of the steps. Their order is that of the conditions in an expression.
	Contributions []Contribution
}

// namespaces returns the namespaces whose pods are sent.
func (in Input) namespaces() (closed, open []string) {
	for _, c := range in.Contributions {
		closed, open = append(closed, c.Closed...), append(open, c.Open...)
	}
	return sorted(closed), sorted(open)
}

// Scope is which pods API servers send.
type Scope struct {
	// Entries in a stable order; none where no pod can match.
	Entries []entry
	// Notes report where the entries differ from the contributions.
	Notes []note.Note
}

// group is the clauses that ask the same of the labels of namespaces.
type group struct {
	namespaces   []metav1.LabelSelectorRequirement
	closed, open alternatives
}

// Plan returns the scope of the contributions.
func Plan(in Input) Scope {
	var s Scope
	groups := map[string]*group{"": {}}
	for _, c := range in.Contributions {
		for i := range c.Selections {
			s.file(groups, &c.Selections[i])
		}
		for _, condition := range c.Conditions {
			into := &groups[""].closed
			if condition.Ignore {
				into = &groups[""].open
			}
			into.conditions = append(into.conditions, condition.Expression)
		}
	}
	slices.SortFunc(s.Notes, func(a, b note.Note) int { return strings.Compare(a.Object, b.Object) })
	if len(groups) > maxGroups {
		return s.all(in, "namespaceSelectors are too many")
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		s.add(in, id, groups[id])
	}
	s.addNamespaces(in, &groups[""].closed)
	bytes := 0
	for i := range s.Entries {
		bytes += s.Entries[i].Size()
	}
	if bytes > maxBytes {
		return s.all(in, "entries are larger than an object may be")
	}
	return s
}

// all returns the scope of all pods.
func (s *Scope) all(in Input, why string) Scope {
	every := Scope{Notes: s.Notes}
	every.add(in, "", &group{closed: alternatives{all: true}})
	every.widened("mpod"+nameEnd, "all pods are sent: "+why)
	return every
}

// file adds the clause of a selection to the group of those that ask the same of the labels of namespaces.
func (s *Scope) file(groups map[string]*group, of *Selection) {
	r := of.Read()
	if r.Never {
		return
	}
	if !r.Whole {
		text := "its selectors cannot be read in full: pods that the rest selects are not created"
		if !r.Bounded() {
			text = "none of its selectors can be read, so that it is left out: it would stand in the way of every pod"
		}
		s.Notes = append(s.Notes, note.Note{Level: note.Blocked, Code: NoteUnreadable, Object: of.Object, Text: text})
	}
	if !r.Whole && !r.Bounded() {
		return
	}
	var name, others []metav1.LabelSelectorRequirement
	for _, one := range r.Namespace {
		if one.Key == corev1.LabelMetadataName {
			name = append(name, one)
		} else {
			others = append(others, one)
		}
	}
	id := ""
	if len(others) > 0 {
		id = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: others})
	}
	if groups[id] == nil {
		groups[id] = &group{namespaces: others}
	}
	into := &groups[id].closed
	if of.Ignore {
		into = &groups[id].open
	}
	into.add(r.Pod, name)
}

// add adds the entries of a group. The open one excludes the pods of the other, which would be sent twice.
func (s *Scope) add(in Input, id string, g *group) {
	closed, closedWide := g.closed.expression()
	if !g.closed.empty() {
		e := frame(in, false)
		e.Name, e.MatchConditions = nameOf("mpod", id), []matchCondition{{Name: Selected, Expression: closed}}
		s.append(e, g.namespaces, closedWide)
	}
	open, openWide := g.open.expression()
	if g.open.empty() || closed == always {
		return
	}
	e := frame(in, true)
	e.Name, e.MatchConditions = nameOf("mpod-open", id), []matchCondition{{Name: Selected, Expression: open}}
	if !g.closed.empty() {
		e.MatchConditions = append(e.MatchConditions, not(closed))
	}
	s.append(e, g.namespaces, openWide)
}

// addNamespaces adds the entries of the namespaces whose pods are sent. They exclude the pods of the first entry of
// groups.
func (s *Scope) addNamespaces(in Input, main *alternatives) {
	taken, _ := main.expression()
	if taken == always {
		return
	}
	closed, open := in.namespaces()
	if len(closed) > 0 {
		e := frame(in, false)
		e.Name, e.MatchConditions = "mpod-namespaces"+nameEnd, []matchCondition{{Name: Selected, Expression: steered}}
		s.append(e, nil, !within(e, closed))
	}
	if len(open) > 0 {
		e := frame(in, true)
		e.Name = "mpod-open-namespaces" + nameEnd
		s.append(e, nil, !within(e, open))
	}
	for i := range s.Entries {
		if e := &s.Entries[i]; strings.HasSuffix(e.Name, "-namespaces"+nameEnd) && !main.empty() {
			e.MatchConditions = append(e.MatchConditions, not(taken))
		}
	}
}

func not(expression string) matchCondition {
	return matchCondition{Name: NotTaken, Expression: "!(" + expression + ")"}
}

// append adds an entry, with requirements on the labels of namespaces. A note reports that the entry is wide.
func (s *Scope) append(e *entry, namespaces []metav1.LabelSelectorRequirement, wide bool) {
	e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions, namespaces...)
	s.Entries = append(s.Entries, *e)
	if wide {
		s.widened(e.Name, "what it selects is more than a bound: all pods are sent")
	}
}

func (s *Scope) widened(name, text string) {
	s.Notes = append(s.Notes, note.Note{Level: note.Info, Code: NoteWidened, Object: name, Text: text})
}

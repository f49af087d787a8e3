package scope

import (
	"cmp"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kruisekit/kruisekit/note"
)

// Input is the contributions of the steps, and how API servers reach the webhook.
type Input struct {
	// Client is how API servers reach the webhook.
	Client admissionregistrationv1.WebhookClientConfig
	// Namespace is the webhook's own.
	Namespace string
	// Contributions of the steps. Their order is that of the alternatives in an expression.
	Contributions []Contribution
}

func (in Input) check() error {
	if in.Namespace == "" {
		return errors.New("plan scope: the webhook's own namespace is required")
	}
	return nil
}

// Scope is which pods API servers send.
type Scope struct {
	// Entries in a stable order; none where no pod can match.
	Entries []admissionregistrationv1.MutatingWebhook
	// Notes report where the entries differ from the contributions.
	Notes []note.Note
}

// fits reports whether the entries fit into one object, and whether they are few enough for each new pod.
func (s *Scope) fits() bool {
	size := s.Size()
	return size.Bytes <= mostBytes && size.Entries <= mostEntries
}

// Plan returns the scope of the contributions.
func Plan(in Input) (Scope, error) {
	if err := in.check(); err != nil {
		return Scope{}, err
	}
	var about []note.Note
	groups := map[string]*group{"": {}}
	for _, c := range in.Contributions {
		selections := slices.Clone(c.Selections)
		slices.SortStableFunc(selections, func(a, b Selection) int { return cmp.Compare(a.Object, b.Object) })
		for i := range selections {
			about = append(about, file(groups, &selections[i])...)
		}
		groups[""].add(c)
	}
	about = append(about, bounded(groups)...)
	all := make(map[string]forms, len(groups))
	for id, g := range groups {
		all[id] = forms{closed: g.closedForms(), open: g.openForms()}
	}
	var s Scope
	for _, b := range sizes() {
		if s = plan(in, groups, all, b); s.fits() {
			break
		}
	}
	s.Notes = append(about, s.Notes...)
	return s, nil
}

// forms are the conditions of a group, in every form.
type forms struct{ closed, open []form }

// plan returns the entries within bounds.
func plan(in Input, groups map[string]*group, all map[string]forms, b size) Scope {
	var s Scope
	for _, ignore := range []bool{false, true} {
		for _, id := range ids(groups) {
			of := conditions{ignore: ignore}
			of.closed, of.closedWidened = within(all[id].closed, b)
			of.open, of.openWidened = within(all[id].open, b)
			entries, notes := groups[id].entries(in, id, of)
			s.Entries, s.Notes = append(s.Entries, entries...), append(s.Notes, notes...)
		}
	}
	return s
}

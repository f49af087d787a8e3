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
		return errors.New("compute scope: the webhook's own namespace is required")
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

// Compute returns the scope of the contributions.
func Compute(in Input) (Scope, error) {
	if err := in.check(); err != nil {
		return Scope{}, err
	}
	var s Scope
	groups := map[string]*group{"": {}}
	for _, c := range in.Contributions {
		selections := slices.Clone(c.Selections)
		slices.SortStableFunc(selections, func(a, b Selection) int { return cmp.Compare(a.Object, b.Object) })
		for i := range selections {
			s.Notes = append(s.Notes, file(groups, &selections[i])...)
		}
		groups[""].add(c.Conditions)
	}
	s.Notes = append(s.Notes, bounded(groups)...)
	for _, ignore := range []bool{false, true} {
		for _, id := range ids(groups) {
			entry, notes := groups[id].entry(in, id, ignore)
			s.Notes = append(s.Notes, notes...)
			if entry != nil {
				s.Entries = append(s.Entries, *entry)
			}
		}
	}
	return s, nil
}

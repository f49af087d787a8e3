package scope

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// exemptSuffix is in the names of the entries of exempt users.
const exemptSuffix = "-exempt"

// exempting returns the scope in which the requests of users have entries of their own, one beside each entry. API
// servers ignore these while no replica answers, so that pods of a higher priority get their place during an outage,
// too. Where the copies do not fit into one object, one entry of each kind sends the users' requests about all pods:
// the others stay exact.
func (s Scope) exempting(users []string) Scope {
	if len(users) == 0 {
		return s
	}
	is := oneOf("request.userInfo.username", sorted(users))
	others := Scope{Notes: s.Notes}
	var copies, wide []admissionregistrationv1.MutatingWebhook
	for i := range s.Entries {
		e := s.Entries[i]
		e.MatchConditions = append(slices.Clone(e.MatchConditions), admissionregistrationv1.MatchCondition{
			Name: User, Expression: "!(" + is + ")",
		})
		others.Entries = append(others.Entries, e)
		spare := exemptEntry(&s.Entries[i], is)
		copies = append(copies, *spare)
		if !strings.Contains(spare.Name, "-part-") {
			wide = append(wide, *forAll(spare))
		}
	}
	if with := (Scope{Notes: s.Notes, Entries: slices.Concat(others.Entries, copies)}); with.fits() {
		return with
	}
	return Scope{Notes: s.Notes, Entries: slices.Concat(others.Entries, wide)}
}

// exemptEntry returns the entry beside another one, for the requests that a condition on users holds for.
func exemptEntry(of *admissionregistrationv1.MutatingWebhook, is string) *admissionregistrationv1.MutatingWebhook {
	e := of.DeepCopy()
	e.FailurePolicy, e.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To[int32](openSeconds)
	e.ClientConfig = onward(e.ClientConfig, openSuffix)
	kind, _, _ := strings.Cut(strings.TrimSuffix(e.Name, nameEnd), "-")
	e.Name = kind + exemptSuffix + strings.TrimPrefix(e.Name, kind)
	e.MatchConditions = append(e.MatchConditions, admissionregistrationv1.MatchCondition{Name: User, Expression: is})
	return e
}

// forAll returns an entry that selects all pods.
func forAll(e *admissionregistrationv1.MutatingWebhook) *admissionregistrationv1.MutatingWebhook {
	e = e.DeepCopy()
	for i := range e.MatchConditions {
		if c := &e.MatchConditions[i]; c.Name == Selected {
			c.Expression = always
		}
	}
	return e
}

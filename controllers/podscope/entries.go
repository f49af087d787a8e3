package podscope

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

type (
	configuration = admissionregistrationv1.MutatingWebhookConfiguration
	entry         = admissionregistrationv1.MutatingWebhook
	requirement   = metav1.LabelSelectorRequirement
)

// compare returns the entries of a configuration with those that are wanted, and the names of the entries that differ.
// Ca is that of new entries. Entries are ours by their names, and not by a field manager: config/takeover applies an
// entry with our name, which would be back as a catch-all once we release it.
func compare(have *configuration, want []entry, ca []byte) (next []entry, names []string, isNew bool) {
	next = []entry{}
	for _, live := range entriesOf(have) {
		at := slices.IndexFunc(want, func(w entry) bool { return w.Name == live.Name })
		if at < 0 && scope.Ours(live.Name) {
			names = append(names, live.Name)
			continue
		}
		merged := live
		if at >= 0 {
			merged = merge(&live, &want[at], ca)
		}
		if !equality.Semantic.DeepEqual(live, merged) {
			names = append(names, live.Name)
		}
		next = append(next, merged)
	}
	for i := range want {
		if slices.ContainsFunc(next, func(e entry) bool { return e.Name == want[i].Name }) {
			continue
		}
		next = append(next, withAuthority(*want[i].DeepCopy(), ca))
		names, isNew = append(names, want[i].Name), true
	}
	return next, names, isNew
}

// withAuthority returns an entry with a CA, if it lacks one.
func withAuthority(e entry, ca []byte) entry {
	if e.ClientConfig.Service != nil && len(e.ClientConfig.CABundle) == 0 {
		e.ClientConfig.CABundle = ca
	}
	return e
}

// entriesOf returns the entries of a configuration; none if there is no configuration.
func entriesOf(c *configuration) []entry {
	if c == nil {
		return nil
	}
	return c.Webhooks
}

// merge returns a live entry with what is ours: the rules, how API servers reach the webhook, the match conditions and
// our requirements on namespaces. The policy, the timeout, the CA, and the selectors that others have added stay.
func merge(have, want *entry, ca []byte) entry {
	next := have.DeepCopy()
	next.Rules, next.MatchConditions = want.Rules, want.MatchConditions
	next.ClientConfig = *want.ClientConfig.DeepCopy()
	if want.ClientConfig.Service != nil {
		next.ClientConfig.CABundle = have.ClientConfig.CABundle // package certificates keeps it
	}
	if next.NamespaceSelector == nil {
		next.NamespaceSelector = &metav1.LabelSelector{}
	}
	next.NamespaceSelector.MatchExpressions = requirements(next.NamespaceSelector.MatchExpressions,
		want.NamespaceSelector.MatchExpressions)
	return withAuthority(*next, ca)
}

// requirements returns those of a live selector without stale ones, and those that it lacks.
func requirements(have, want []requirement) []requirement {
	contains := func(all []requirement, r requirement) bool {
		return slices.ContainsFunc(all, func(o requirement) bool { return equality.Semantic.DeepEqual(o, r) })
	}
	next := slices.DeleteFunc(slices.Clone(have), func(r requirement) bool {
		return scope.OwnRequirement(r) && !contains(want, r)
	})
	for _, r := range want {
		if !contains(next, r) {
			next = append(next, r)
		}
	}
	return next
}

// injectors is the prefix of annotations by which cert-manager keeps the CA of a configuration.
const injectors = "cert-manager.io/"

// writeOf returns the write of the entries of a configuration. Main is the configuration that has the CA.
func writeOf(have, main *configuration, name string, next []entry) *write.Write {
	if have != nil {
		return write.JSON(have, write.Main,
			write.Test("/metadata/resourceVersion", have.ResourceVersion), write.Add("/webhooks", next))
	}
	object := &configuration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: next}
	if main != nil {
		for key, value := range main.Annotations {
			if strings.HasPrefix(key, injectors) {
				metav1.SetMetaDataAnnotation(&object.ObjectMeta, key, value)
			}
		}
	}
	return &write.Write{Verb: write.Create, Object: object}
}

package podscope

import (
	"fmt"
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

// change makes a configuration have the entries that are wanted. Entries are ours by their names, and not by a field
// manager: config/takeover applies an entry with our name, which would be back as a catch-all once we release it.
type change struct {
	ops   []write.Op
	added []entry
	// names of the entries.
	names []string
}

// compare returns the change of the live entries to those that are wanted. Ca is that of new entries.
func compare(have *configuration, want []entry, ca []byte) change {
	var c change
	live := entriesOf(have)
	for i := range want {
		w := want[i].DeepCopy()
		at := slices.IndexFunc(live, func(h entry) bool { return h.Name == w.Name })
		if at >= 0 {
			w = merge(&live[at], w)
		}
		if w.ClientConfig.Service != nil && len(w.ClientConfig.CABundle) == 0 {
			w.ClientConfig.CABundle = ca
		}
		switch {
		case at < 0:
			c.added = append(c.added, *w)
		case equality.Semantic.DeepEqual(&live[at], w):
			continue
		default:
			c.ops = append(c.ops, write.Replace(fmt.Sprintf("/webhooks/%d", at), w))
		}
		c.names = append(c.names, w.Name)
	}
	var stale []string
	for _, h := range live {
		if scope.Ours(h.Name) && !slices.ContainsFunc(want, func(w entry) bool { return w.Name == h.Name }) {
			stale = append(stale, h.Name)
		}
	}
	c.ops, c.names = append(c.ops, remove(have, stale)...), append(c.names, stale...)
	return c
}

// remove returns the operations that remove entries, the last one first, so that the indexes of the others stay.
func remove(have *configuration, names []string) []write.Op {
	var ops []write.Op
	for i, h := range slices.Backward(entriesOf(have)) {
		if slices.Contains(names, h.Name) {
			ops = append(ops, write.Remove(fmt.Sprintf("/webhooks/%d", i)))
		}
	}
	return ops
}

// entriesOf returns the entries of a configuration; none if there is no configuration.
func entriesOf(c *configuration) []entry {
	if c == nil {
		return nil
	}
	return c.Webhooks
}

// merge returns a live entry with what is ours: the rules, how API servers reach the webhook, our match conditions and
// our requirements on namespaces. The policy, the timeout, the CA, and what others have added stay.
func merge(have, want *entry) *entry {
	next := have.DeepCopy()
	next.Rules = want.Rules
	next.ClientConfig = *want.ClientConfig.DeepCopy()
	if want.ClientConfig.Service != nil {
		next.ClientConfig.CABundle = have.ClientConfig.CABundle // package certificates keeps it
	}
	isTheirs := func(c admissionregistrationv1.MatchCondition) bool { return !scope.OwnCondition(c) }
	own := slices.DeleteFunc(slices.Clone(have.MatchConditions), isTheirs)
	if !slices.Equal(own, want.MatchConditions) { // else also in the order of another writer
		theirs := slices.DeleteFunc(slices.Clone(have.MatchConditions), scope.OwnCondition)
		next.MatchConditions = slices.Concat(want.MatchConditions, theirs)
	}
	if next.NamespaceSelector == nil {
		next.NamespaceSelector = &metav1.LabelSelector{}
	}
	next.NamespaceSelector.MatchExpressions = requirements(next.NamespaceSelector.MatchExpressions,
		want.NamespaceSelector.MatchExpressions)
	return next
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

// needed reports whether there is anything to write.
func (c *change) needed() bool { return len(c.ops)+len(c.added) > 0 }

// injectors is the prefix of annotations by which cert-manager keeps the CA of a configuration.
const injectors = "cert-manager.io/"

// write returns the one write of the change. Main is the configuration that has the CA.
func (c *change) write(have, main *configuration, name string) *write.Write {
	if have == nil {
		object := &configuration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: c.added}
		if main != nil {
			for key, value := range main.Annotations {
				if strings.HasPrefix(key, injectors) {
					metav1.SetMetaDataAnnotation(&object.ObjectMeta, key, value)
				}
			}
		}
		return &write.Write{Verb: write.Create, Object: object}
	}
	ops := append([]write.Op{write.Test("/metadata/resourceVersion", have.ResourceVersion)}, c.ops...)
	if len(c.added) > 0 && len(have.Webhooks) == 0 {
		ops = append(ops, write.Add("/webhooks", []entry{}))
	}
	for i := range c.added {
		ops = append(ops, write.Add("/webhooks/-", &c.added[i]))
	}
	return write.JSON(have, write.Main, ops...)
}

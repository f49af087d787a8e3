package entries

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

// change is what makes a configuration have the entries that are wanted.
type change struct {
	ops []write.Op
	// added are the new entries.
	added []*entry
	// wanted is the record of all entries.
	wanted string
	// edited are the parts of entries that another writer has changed.
	edited []string
	// create reports that the configuration does not exist.
	create bool
}

// needed reports whether there is anything to write.
func (c *change) needed() bool { return c.create || len(c.ops) > 0 || len(c.added) > 0 }

// compare compares the live entries with those that are wanted.
func compare(have *configuration, want []entry) (change, error) {
	c := change{create: have == nil && len(want) > 0}
	before, known := readRecord(have)
	now := record{}
	if have == nil {
		have = &configuration{}
	}
	for i := range want {
		w := &want[i]
		r, err := recordOf(w)
		if err != nil {
			return change{}, err
		}
		now[w.Name] = r
		was, recorded := before[w.Name]
		at := slices.IndexFunc(have.Webhooks, func(h entry) bool { return h.Name == w.Name })
		if at < 0 {
			c.added = append(c.added, w.DeepCopy())
			if recorded {
				c.edited = append(c.edited, w.Name+" was removed")
			}
			continue
		}
		if recorded {
			parts, err := was.edits(&have.Webhooks[at])
			if err != nil {
				return change{}, err
			}
			c.edited = append(c.edited, parts...)
		}
		c.revise(fmt.Sprintf("/webhooks/%d", at), &have.Webhooks[at], w, was.Namespaces)
	}
	c.drop(have, now, before)
	text, err := json.Marshal(now)
	if err != nil {
		return change{}, fmt.Errorf("encode record: %w", err)
	}
	c.wanted = string(text)
	c.note(have, known, len(now) == 0)
	return c, nil
}

// revise updates what is ours in an entry. Stale are the requirements on namespaces that were written before.
func (c *change) revise(at string, have, want *entry, stale []requirement) {
	if !slices.Equal(ours(have.MatchConditions), want.MatchConditions) {
		theirs := slices.DeleteFunc(slices.Clone(have.MatchConditions), isOurs)
		c.set(at+"/matchConditions", slices.Concat(want.MatchConditions, theirs))
	}
	if !equality.Semantic.DeepEqual(have.Rules, want.Rules) {
		c.set(at+"/rules", want.Rules)
	}
	client := want.ClientConfig
	if client.Service != nil {
		client.CABundle = have.ClientConfig.CABundle // package certificates keeps it
	}
	if !equality.Semantic.DeepEqual(have.ClientConfig, client) {
		c.set(at+"/clientConfig", client)
	}
	if next := merged(have.NamespaceSelector,
		want.NamespaceSelector, stale); !equality.Semantic.DeepEqual(have.NamespaceSelector, next) {
		c.set(at+"/namespaceSelector", next)
	}
}

func (c *change) set(at string, value any) { c.ops = append(c.ops, write.Add(at, value)) }

// drop removes our entries that are not wanted any more, the last one first, so that the indexes of the others stay.
func (c *change) drop(have *configuration, now, before record) {
	for i, h := range slices.Backward(have.Webhooks) {
		_, wanted := now[h.Name]
		if _, recorded := before[h.Name]; !wanted && (recorded || scope.Ours(h.Name)) {
			c.ops = append(c.ops, write.Remove(fmt.Sprintf("/webhooks/%d", i)))
		}
	}
}

// note writes the record.
func (c *change) note(have *configuration, known, empty bool) {
	switch {
	case c.create, !known && empty: // it is part of the creation, or nothing was written and nothing is wanted
	case have.Annotations == nil:
		c.set("/metadata/annotations", map[string]string{recordKey: c.wanted})
	case have.Annotations[recordKey] != c.wanted:
		c.set("/metadata/annotations/"+write.Escape(recordKey), c.wanted)
	}
}

// trust sets the CA of the new entries; false if there is none yet.
func (c *change) trust(client admissionregistrationv1.WebhookClientConfig, o Observation) bool {
	if client.Service == nil || len(client.CABundle) > 0 || len(c.added) == 0 {
		return true
	}
	ca := scope.Authority(client, o.Main, o.Pods)
	for _, a := range c.added {
		a.ClientConfig.CABundle = ca
	}
	return len(ca) > 0
}

// injectors is the prefix of annotations by which cert-manager keeps the CA of a configuration.
const injectors = "cert-manager.io/"

// write returns the one write of the change.
func (c *change) write(o Observation, name string) *write.Write {
	have := o.Pods
	if have == nil {
		object := &configuration{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{recordKey: c.wanted},
		}}
		if o.Main != nil {
			for key, value := range o.Main.Annotations {
				if strings.HasPrefix(key, injectors) {
					object.Annotations[key] = value
				}
			}
		}
		for _, a := range c.added {
			object.Webhooks = append(object.Webhooks, *a)
		}
		return &write.Write{Verb: write.Create, Object: object}
	}
	ops := append([]write.Op{write.Test("/metadata/resourceVersion", have.ResourceVersion)}, c.ops...)
	if len(c.added) > 0 && len(have.Webhooks) == 0 {
		ops = append(ops, write.Add("/webhooks", []entry{}))
	}
	for _, a := range c.added {
		ops = append(ops, write.Add("/webhooks/-", a))
	}
	return write.JSON(have, write.Main, ops...)
}

// ours returns the conditions with our names.
func ours(all []admissionregistrationv1.MatchCondition) []admissionregistrationv1.MatchCondition {
	return slices.DeleteFunc(slices.Clone(all), func(c admissionregistrationv1.MatchCondition) bool { return !isOurs(c) })
}

func isOurs(c admissionregistrationv1.MatchCondition) bool {
	return slices.Contains([]string{scope.Selected, scope.NotTaken, scope.Disrupts, scope.User}, c.Name)
}

// merged returns a selector with its own requirements and those that are wanted, without those that are stale.
func merged(have, want *metav1.LabelSelector, stale []requirement) *metav1.LabelSelector {
	next := ptr.Deref(have, metav1.LabelSelector{})
	next.MatchExpressions = slices.DeleteFunc(slices.Clone(next.MatchExpressions), func(r requirement) bool {
		return contains(stale, r) && !contains(want.MatchExpressions, r)
	})
	for _, r := range want.MatchExpressions {
		if !contains(next.MatchExpressions, r) {
			next.MatchExpressions = append(next.MatchExpressions, r)
		}
	}
	return &next
}

func contains(all []requirement, one requirement) bool {
	return slices.ContainsFunc(all, func(r requirement) bool { return equality.Semantic.DeepEqual(r, one) })
}

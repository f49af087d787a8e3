package podscope

import (
	"crypto/sha256"
	"encoding/hex"
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

// recordKey is the annotation of the configuration that has what was written last, by the names of entries.
const recordKey = "kruisekit.dev/pod-scope"

type entry = admissionregistrationv1.MutatingWebhook

// plan is the one write that a configuration needs, if any.
type plan struct {
	patch []write.Op
	// added are the new entries.
	added []*entry
	// recorded is the content of the annotation, and wanted the same as one string.
	recorded map[string]string
	wanted   string
}

// makePlan compares the entries with those that are wanted. Of provisional entries it removes only those that have ended.
func makePlan(have *admissionregistrationv1.MutatingWebhookConfiguration, want []entry, over ...string) (plan, error) {
	before := map[string]string{}
	if json.Unmarshal([]byte(have.Annotations[recordKey]), &before) != nil {
		before = map[string]string{} // written by another writer
	}
	p := plan{recorded: map[string]string{}}
	for i := range want {
		w := &want[i]
		now, err := fingerprint(w)
		if err != nil {
			return plan{}, err
		}
		p.recorded[w.Name] = now
		at := slices.IndexFunc(have.Webhooks, func(h entry) bool { return h.Name == w.Name })
		switch {
		case at < 0:
			p.added = append(p.added, w.DeepCopy())
		case before[w.Name] != now:
			p.revise(fmt.Sprintf("/webhooks/%d", at), &have.Webhooks[at], revision{want: w, all: !sameBase(before[w.Name], now)})
		}
	}
	p.drop(have, func(name string) bool {
		if scope.IsProvisional(name) {
			return slices.Contains(over, name)
		}
		_, recorded := before[name]
		return recorded || scope.Ours(name)
	})
	return p, p.finish(have)
}

// fingerprint returns the hashes of the match conditions, which sets change, and of the rest.
func fingerprint(w *entry) (string, error) {
	rest := w.DeepCopy()
	rest.MatchConditions = nil
	if rest.ClientConfig.Service != nil {
		rest.ClientConfig.CABundle = nil // the keeper of the certificate replaces it
	}
	base, err := hash(rest)
	if err != nil {
		return "", err
	}
	conditions, err := hash(w.MatchConditions)
	return base + "." + conditions, err
}

func sameBase(a, b string) bool {
	base, _, _ := strings.Cut(a, ".")
	return strings.HasPrefix(b, base+".")
}

func hash(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode entry: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}

// revision is the change of an entry: of its match conditions, or of all.
type revision struct {
	want *entry
	all  bool
}

// revise updates an entry, and keeps what others have changed.
func (p *plan) revise(at string, have *entry, r revision) {
	conditions := slices.Clone(r.want.MatchConditions)
	for _, c := range have.MatchConditions {
		if c.Name != scope.Selected && c.Name != scope.NotTaken {
			conditions = append(conditions, c)
		}
	}
	p.set(at+"/matchConditions", have.MatchConditions, conditions)
	if !r.all {
		return
	}
	p.set(at+"/rules", have.Rules, r.want.Rules)
	c := r.want.ClientConfig
	if c.Service != nil {
		c.CABundle = have.ClientConfig.CABundle
	}
	p.set(at+"/clientConfig", have.ClientConfig, c)
	p.set(at+"/namespaceSelector", have.NamespaceSelector, both(have.NamespaceSelector, r.want.NamespaceSelector))
}

func (p *plan) set(at string, have, want any) {
	if !equality.Semantic.DeepEqual(have, want) {
		p.patch = append(p.patch, write.Add(at, want))
	}
}

// both returns a selector with the requirements of two.
func both(have, want *metav1.LabelSelector) *metav1.LabelSelector {
	all := ptr.Deref(have, metav1.LabelSelector{})
	all.MatchExpressions = slices.Clone(all.MatchExpressions)
	for _, e := range want.MatchExpressions {
		if !slices.ContainsFunc(all.MatchExpressions, func(h metav1.LabelSelectorRequirement) bool { return equality.Semantic.DeepEqual(h, e) }) {
			all.MatchExpressions = append(all.MatchExpressions, e)
		}
	}
	return &all
}

// drop removes our entries that are not wanted any more, the last one first, so that the indexes of the others stay.
func (p *plan) drop(have *admissionregistrationv1.MutatingWebhookConfiguration, ours func(string) bool) {
	for i, h := range slices.Backward(have.Webhooks) {
		if _, wanted := p.recorded[h.Name]; !wanted && ours(h.Name) {
			p.patch = append(p.patch, write.Remove(fmt.Sprintf("/webhooks/%d", i)))
		}
	}
}

// finish adds the new entries, the record, and a test before all of them.
func (p *plan) finish(have *admissionregistrationv1.MutatingWebhookConfiguration) error {
	if len(p.added) > 0 && len(have.Webhooks) == 0 {
		p.patch = append(p.patch, write.Add("/webhooks", []entry{}))
	}
	for _, a := range p.added {
		p.patch = append(p.patch, write.Add("/webhooks/-", a))
	}
	record, err := json.Marshal(p.recorded)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	p.wanted = string(record)
	_, known := have.Annotations[recordKey]
	switch {
	case !known && len(p.recorded) == 0: // nothing was written, and nothing is wanted
	case have.Annotations == nil:
		p.patch = append(p.patch, write.Add("/metadata/annotations", map[string]string{recordKey: p.wanted}))
	case have.Annotations[recordKey] != p.wanted:
		p.patch = append(p.patch, write.Add("/metadata/annotations/"+write.Escape(recordKey), p.wanted))
	}
	if len(p.patch) > 0 {
		p.patch = append([]write.Op{write.Test("/metadata/resourceVersion", have.ResourceVersion)}, p.patch...)
	}
	return nil
}

// trust sets the CA of the new entries.
func (p *plan) trust(ca []byte) {
	for _, a := range p.added {
		a.ClientConfig.CABundle = ca
	}
}

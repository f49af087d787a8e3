package distribution

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Reserved reports whether a namespace never gets a copy.
func Reserved(namespace string) bool {
	return namespace == metav1.NamespaceSystem || namespace == metav1.NamespacePublic
}

// Targets select namespaces.
type Targets struct {
	all      bool
	selector labels.Selector
	// included and excluded are names, and reserved those that get no copy beside kube-system and kube-public.
	included, excluded, reserved map[string]bool
}

// Select reads spec.targets. It reports a selector that cannot be parsed. The namespaces that are reserved are no
// targets, as kube-system and kube-public are none: a copy that is there already stays as it is while the distribution
// selects its namespace.
func Select(t v1beta1.ResourceDistributionTargets, reserved ...string) (*Targets, error) {
	selector := labels.Nothing()
	if len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) > 0 {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(&t.NamespaceSelector); err != nil {
			return nil, fmt.Errorf("read namespace selector: %w", err)
		}
	}
	s := &Targets{
		all:      t.AllNamespaces,
		selector: selector,
		included: names(t.IncludedNamespaces),
		excluded: names(t.ExcludedNamespaces),
		reserved: map[string]bool{},
	}
	for _, name := range reserved {
		s.reserved[name] = true
	}
	return s, nil
}

func names(list v1beta1.ResourceDistributionTargetNamespaces) map[string]bool {
	all := map[string]bool{}
	for _, n := range list.List {
		all[n.Name] = true
	}
	return all
}

// Match reports whether an existing namespace with these labels is a target.
func (t *Targets) Match(namespace string, has map[string]string) bool {
	return !t.reserved[namespace] && t.selects(namespace, has)
}

// spares reports whether the copy of a namespace stays as it is, because the namespace would be a target if it was not
// reserved.
func (t *Targets) spares(namespace string, has map[string]string) bool {
	return t.reserved[namespace] && t.selects(namespace, has)
}

func (t *Targets) selects(namespace string, has map[string]string) bool {
	if Reserved(namespace) || t.excluded[namespace] {
		return false
	}
	return t.all || t.included[namespace] || t.selector.Matches(labels.Set(has))
}

// Names returns the targets that are listed by name, sorted. They need not exist. With allNamespaces the list adds
// nothing.
func (t *Targets) Names() []string {
	if t.all {
		return nil
	}
	all := slices.Sorted(maps.Keys(t.included))
	return slices.DeleteFunc(all, func(name string) bool {
		return name == "" || Reserved(name) || t.reserved[name] || t.excluded[name]
	})
}

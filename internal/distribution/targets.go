package distribution

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Targets select namespaces.
type Targets struct {
	all      bool
	selector labels.Selector
	// included and excluded are names of namespaces.
	included, excluded map[string]bool
	// reserved is a namespace that is selected like others, and gets no copy.
	reserved string
}

// Select reads spec.targets. It reports a selector that cannot be parsed. The reserved namespace is no target. A copy
// in it stays as it is while the distribution selects the namespace.
func Select(t v1beta1.ResourceDistributionTargets, reserved string) (*Targets, error) {
	selector := labels.Nothing()
	if len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) > 0 {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(&t.NamespaceSelector); err != nil {
			return nil, fmt.Errorf("read namespace selector: %w", err)
		}
	}
	return &Targets{
		all: t.AllNamespaces, selector: selector, reserved: reserved,
		included: names(t.IncludedNamespaces), excluded: names(t.ExcludedNamespaces),
	}, nil
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
	return namespace != t.reserved && t.Selects(namespace, has)
}

// Selects is Match that includes the reserved namespace.
func (t *Targets) Selects(namespace string, has map[string]string) bool {
	if t.never(namespace) {
		return false
	}
	return t.all || t.included[namespace] || t.selector.Matches(labels.Set(has))
}

func (t *Targets) never(namespace string) bool {
	return namespace == metav1.NamespaceSystem || namespace == metav1.NamespacePublic || t.excluded[namespace]
}

// Names returns the targets that are listed by name, sorted. They need not exist. With allNamespaces the list adds
// nothing.
func (t *Targets) Names() []string {
	if t.all {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.included)), func(name string) bool {
		return name == "" || name == t.reserved || t.never(name)
	})
}

package sidecar

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/sidecar/sizing"
)

// Set is a SidecarSet that was read, with its selectors, formulas and hashes at hand, so that a pod costs no parsing. It
// does not change, and may be used by several goroutines.
type Set struct {
	object *appsv1beta1.SidecarSet

	selector   query
	namespaces *query // nil for all
	back       holdback

	inits, containers []part
	// sidecars are the names that the set gives to what keeps running, sorted.
	sidecars []string
	// hash and bare are those of its annotations, else they are computed.
	hash, bare string
}

// part is a container of a set.
type part struct {
	*appsv1beta1.SidecarContainer
	// field is where it is written.
	field string
	// names are those of its containers in the pod: one, or two for hot upgrades.
	names  []string
	policy sizing.Policy
	// fault of the policy.
	fault error
}

// Parse reads a set. The object must not be changed any more.
//
// There is always a set. With an error, which joins one *FieldError for each part that cannot be read, the set still gives
// pods to the rest: Select fails for a pod that the selector might mean, and Resolve and Inject where the part is needed.
// So whoever keeps sets can report the error and keep the set, and pods that it has nothing to do with are not harmed.
//
// It reads what pods need, and does not judge the rest. It does not find formulas of a resourcesPolicy that are broken, which
// sizing.Check does, nor an empty selector, which selects nothing, or wrong strategies, annotations and names, which Check of
// webhooks/sidecarset does. Whoever admits sets wants those; what they find and Parse does not is an error of Inject, or a
// pod that the API server refuses.
func Parse(set *appsv1beta1.SidecarSet) (*Set, error) {
	s := &Set{
		object:   set,
		selector: podQuery(set),
		sidecars: Names(set),
		hash:     set.Annotations[pub.SidecarSetHashKey],
		bare:     set.Annotations[pub.SidecarSetHashWithoutImageKey],
	}
	var faults []error
	fault := func(field string, err error) {
		if err != nil {
			faults = append(faults, &FieldError{Set: set.Name, Field: field, Err: err})
		}
	}
	fault(fieldSelector, s.selector.fault)
	if set.Spec.NamespaceSelector != nil {
		q := readQuery(set.Spec.NamespaceSelector)
		s.namespaces = &q
		fault(fieldNamespaceSelector, q.fault)
	}
	if s.Pinned() {
		s.back = readHoldback(set)
		fault(fieldUpdateSelector, s.back.selector.fault)
		fault(fieldPartition, s.back.fault)
	}
	s.inits, s.containers = readParts(set.Spec.InitContainers, true), readParts(set.Spec.Containers, false)
	for _, p := range slices.Concat(s.inits, s.containers) {
		fault(p.field+".resourcesPolicy", p.fault)
	}
	for _, h := range []struct {
		into    *string
		compute func(*appsv1beta1.SidecarSet) (string, error)
	}{{&s.hash, Hash}, {&s.bare, HashWithoutImage}} {
		if *h.into == "" {
			var err error
			*h.into, err = h.compute(set)
			fault("spec.containers", err)
		}
	}
	return s, errors.Join(faults...)
}

// Object is the set as it was given. It must not be changed.
func (s *Set) Object() *appsv1beta1.SidecarSet { return s.object }

// Name of the set.
func (s *Set) Name() string { return s.object.Name }

// Namespaces are those of the function Namespaces.
func (s *Set) Namespaces() []string { return Namespaces(s.object) }

func readParts(containers []appsv1beta1.SidecarContainer, init bool) []part {
	list := "spec.containers"
	if init {
		list = "spec.initContainers"
	}
	parts := make([]part, len(containers))
	for i := range containers {
		p := part{SidecarContainer: &containers[i], field: fmt.Sprintf("%s[%d]", list, i), names: ContainerNames(&containers[i], init)}
		p.policy, p.fault = sizing.Parse(containers[i].ResourcesPolicy)
		parts[i] = p
	}
	return parts
}

// query is a label selector that was read as far as it can be.
type query struct {
	// known is what could be read, and fault why the rest could not.
	known labels.Selector
	fault error
}

// podQuery selects nothing where the set does not say what: an empty selector is as good as none.
func podQuery(set *appsv1beta1.SidecarSet) query {
	if s := set.Spec.Selector; s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return query{known: labels.Nothing()}
	}
	return readQuery(set.Spec.Selector)
}

func readQuery(selector *metav1.LabelSelector) query {
	known, err := metav1.LabelSelectorAsSelector(selector)
	if err == nil {
		return query{known: known}
	}
	q := query{known: labels.Everything(), fault: err}
	add := func(one *metav1.LabelSelector) {
		if s, err := metav1.LabelSelectorAsSelector(one); err == nil {
			requirements, _ := s.Requirements()
			q.known = q.known.Add(requirements...)
		}
	}
	for key, value := range selector.MatchLabels {
		add(&metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
	}
	for i := range selector.MatchExpressions {
		add(&metav1.LabelSelector{MatchExpressions: selector.MatchExpressions[i : i+1]})
	}
	return q
}

// matches is an error where it depends on what could not be read.
func (q query) matches(of map[string]string) (bool, error) {
	if !q.known.Matches(labels.Set(of)) {
		return false, nil
	}
	return q.fault == nil, q.fault
}

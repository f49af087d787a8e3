package sidecar

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

// Set is a parsed SidecarSet with its selectors, formulas and hashes, so that a pod costs no parsing. It does not
// change, and is safe for concurrent use.
type Set struct {
	object *appsv1beta1.SidecarSet

	selector   query
	namespaces *query // nil for all
	back       holdback

	inits, containers []part
	// sidecars are the names of the containers that keep running, sorted.
	sidecars []string
	// hash and bare are those of the annotations; missing ones are computed.
	hash, bare string
	unknown    unknown
}

// part is a container of a set.
type part struct {
	*appsv1beta1.SidecarContainer
	// field is its path in the set.
	field string
	// names are those of its containers in the pod: one, or two for hot upgrades.
	names  []string
	policy sizing.Policy
	// fault of the policy.
	fault error
}

// Parse reads a set. The object must not be changed afterwards.
//
// Parse always returns a set. The error joins one *FieldError for each part that cannot be read. The set is usable for
// the rest: Select fails for a pod that the selector might select, and Resolve and Inject fail if the part is needed.
// So an index can report the error and keep the set, and pods that the set does not concern are not harmed.
//
// Parse reads what pods need, and does not validate the rest: invalid formulas of a resourcesPolicy, an empty selector,
// which selects nothing, and invalid strategies, annotations and names. validation.SidecarSet validates all of them for
// admission. What remains is an error of Inject, or a pod that the API server rejects.
func Parse(set *appsv1beta1.SidecarSet) (*Set, error) {
	s := &Set{
		object:   set,
		selector: podQuery(set),
		sidecars: Names(set),
		hash:     set.Annotations[kruise.SidecarSetHashKey],
		bare:     set.Annotations[kruise.SidecarSetHashWithoutImageKey],
		unknown:  readUnknown(set),
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

// Object returns the set as it was given. It must not be changed.
func (s *Set) Object() *appsv1beta1.SidecarSet { return s.object }

// Name returns the name of the set.
func (s *Set) Name() string { return s.object.Name }

// MayMatch reports whether the set may select a pod with these labels, for an index: what can be parsed of its selector
// does.
func (s *Set) MayMatch(podLabels map[string]string) bool {
	return s.selector.known.Matches(labels.Set(podLabels))
}

func readParts(containers []appsv1beta1.SidecarContainer, init bool) []part {
	list := "spec.containers"
	if init {
		list = "spec.initContainers"
	}
	parts := make([]part, len(containers))
	for i := range containers {
		p := part{
			SidecarContainer: &containers[i], field: fmt.Sprintf("%s[%d]", list, i), names: ContainerNames(&containers[i], init),
		}
		p.policy, p.fault = sizing.Parse(containers[i].ResourcesPolicy)
		parts[i] = p
	}
	return parts
}

// query is a label selector that was parsed as far as possible.
type query struct {
	// known is what could be parsed, and fault the error of the rest.
	known labels.Selector
	fault error
}

// podQuery selects nothing for an empty selector.
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

// matches returns an error if the result depends on what could not be parsed.
func (q query) matches(of map[string]string) (bool, error) {
	if !q.known.Matches(labels.Set(of)) {
		return false, nil
	}
	return q.fault == nil, q.fault
}

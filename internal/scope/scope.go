package scope

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Input is what is there.
type Input struct {
	// Sets of the cluster.
	Sets []*appsv1beta1.SidecarSet
	// Client is how API servers reach the webhook.
	Client admissionregistrationv1.WebhookClientConfig
	// Namespace is the webhook's own.
	Namespace string
	// Owned are pods of controllers of our own group, which get a readiness gate.
	Owned bool
	// All has every pod get one. Where nobody answers they are created without.
	All bool
	// Launch are pods that ask for an order in which their containers start.
	Launch bool
}

func (in Input) check() error {
	if in.Namespace == "" {
		return errors.New("compute scope: the webhook's own namespace is not known")
	}
	return nil
}

// Scope is whom API servers are to ask about what.
type Scope struct {
	// Entries in an order that does not change, none for what there is no pod for.
	Entries []admissionregistrationv1.MutatingWebhook
	// Notes say where they are not what the sets say.
	Notes []Note
}

// Compute gives the scope of what is there.
func Compute(in Input) (Scope, error) {
	if err := in.check(); err != nil {
		return Scope{}, err
	}
	var s Scope
	groups := map[string]*group{"": {}}
	sets := slices.SortedFunc(slices.Values(in.Sets), func(a, b *appsv1beta1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
	for _, set := range sets {
		s.Notes = append(s.Notes, file(groups, set)...)
	}
	groups[""].owned, groups[""].launch, groups[""].all = in.Owned, in.Launch, in.All
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

// Reads is what can be read of the selectors of a set. Whoever decides about pods goes by it where the set itself cannot be
// understood.
type Reads struct {
	// Pod and Namespace are the requirements that can be read; nil for none.
	Pod, Namespace labels.Requirements
	// Whole says that this is all.
	Whole bool
	// Never says that the set selects nothing.
	Never bool
}

// Bounded says that what can be read keeps the set from being about every pod.
func (r Reads) Bounded() bool { return len(r.Pod) > 0 || len(r.Namespace) > 0 }

// Read reads the selectors of a set. An empty one selects no pods, but every namespace.
func Read(set *appsv1beta1.SidecarSet) Reads {
	r := Reads{Whole: true, Never: true}
	if s := set.Spec.Selector; s != nil && (len(s.MatchLabels) > 0 || len(s.MatchExpressions) > 0) {
		r.Pod, r.Whole = requirements(s)
		r.Never = false
	}
	if set.Spec.NamespaceSelector != nil {
		var whole bool
		r.Namespace, whole = requirements(set.Spec.NamespaceSelector)
		r.Whole = r.Whole && whole
	}
	return r
}

// file puts a set into the group of those that ask the same of a namespace's labels.
func file(groups map[string]*group, set *appsv1beta1.SidecarSet) []Note {
	r := Read(set)
	if set.Spec.InjectionStrategy.Paused || r.Never {
		return nil
	}
	var notes []Note
	if !r.Whole {
		if !r.Bounded() {
			return []Note{{NoteUnreadable, set.Name, "none of its selectors can be read, so that it is left out: it would stand in the way of every pod"}}
		}
		notes = append(notes, Note{NoteUnreadable, set.Name, "its selectors cannot be read in full: pods that the rest selects are not created"})
	}
	wanted, possible := terms(r.Pod)
	if !possible {
		return notes
	}
	name, others := byName(r.Namespace)
	names, possible := terms(name)
	if !possible || names[corev1.LabelMetadataName].absent {
		return notes
	}
	asked, possible := terms(others)
	if !possible {
		return notes
	}
	c := clause{labels: wanted, namespace: names[corev1.LabelMetadataName]}
	id := ""
	if len(others) > 0 {
		id = labels.NewSelector().Add(others...).String()
	}
	if groups[id] == nil {
		groups[id] = &group{namespaces: expressions(asked)}
	}
	if Ignores(set) {
		groups[id].open = append(groups[id].open, c)
	} else {
		groups[id].closed = append(groups[id].closed, c)
	}
	return notes
}

// Ignores says that the owner of a set would rather have pods without it than no pods.
func Ignores(set *appsv1beta1.SidecarSet) bool {
	return set.Annotations[appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation] == string(admissionregistrationv1.Ignore)
}

// expressions are terms as a selector has them, in an order that does not change.
func expressions(by map[string]term) []metav1.LabelSelectorRequirement {
	out := make([]metav1.LabelSelectorRequirement, 0, len(by))
	for _, key := range slices.Sorted(maps.Keys(by)) {
		t := by[key]
		if t.absent {
			out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist})
		}
		if t.exists {
			out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
		}
		if t.in != nil {
			out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: t.in})
		}
		if t.out != nil {
			out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: t.out})
		}
	}
	return out
}

package scope

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/note"
)

// Requirements are what can be read of a Selection. The webhook goes by them where the object itself cannot be read.
type Requirements struct {
	// Pod and Namespace are the requirements that can be read; nil for none.
	Pod, Namespace labels.Requirements
	// Whole reports that every requirement can be read.
	Whole bool
	// Never reports that the object selects no pod.
	Never bool
}

// Bounded reports that what can be read keeps the object from selecting every pod.
func (r Requirements) Bounded() bool { return len(r.Pod) > 0 || len(r.Namespace) > 0 }

// Read returns what can be read of the selectors.
func (s *Selection) Read() Requirements {
	r := Requirements{Whole: true, Never: true}
	if p := s.Pod; p != nil && (len(p.MatchLabels) > 0 || len(p.MatchExpressions) > 0) {
		r.Pod, r.Whole = requirements(p)
		r.Never = false
	}
	if s.Namespace != nil {
		var whole bool
		r.Namespace, whole = requirements(s.Namespace)
		r.Whole = r.Whole && whole
	}
	return r
}

// file adds a selection to the group of those that ask the same of the labels of namespaces.
func file(groups map[string]*group, s *Selection) []note.Note {
	r := s.Read()
	if r.Never {
		return nil
	}
	var notes []note.Note
	if !r.Whole {
		if !r.Bounded() {
			return []note.Note{
				newNote(NoteUnreadable, s.Object,
					"none of its selectors can be read, so that it is left out: it would stand in the way of every pod"),
			}
		}
		notes = append(notes, newNote(NoteUnreadable, s.Object,
			"its selectors cannot be read in full: pods that the rest selects are not created"))
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
	if s.Ignore {
		groups[id].open = append(groups[id].open, c)
	} else {
		groups[id].closed = append(groups[id].closed, c)
	}
	return notes
}

// expressions returns terms as a selector has them, in a stable order.
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

package podstate

import (
	"cmp"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Action is what is to be done with the PersistentPodState of a workload.
type Action string

const (
	// Nothing is to be done.
	Nothing Action = ""
	// Create the PersistentPodState.
	Create Action = "Create"
	// Update the spec and the annotations of the PersistentPodState.
	Update Action = "Update"
	// Delete the PersistentPodState.
	Delete Action = "Delete"
	// Occupied reports that a PersistentPodState of the name exists that the workload does not control. Nothing is to be
	// done.
	Occupied Action = "Occupied"
)

// Generation is the PersistentPodState that the annotations of workloads ask for.
type Generation struct {
	Action Action
	// State to create, or as it is after the update; the stored one otherwise.
	State *State
	// Owner is the workload that controls a State to delete. Ask the API server whether its annotations are the latest:
	// the records of the State cannot be restored.
	Owner *Asker
}

// Asks reports whether the annotations of a workload may concern a generated PersistentPodState.
func Asks(annotations map[string]string) bool {
	_, is := annotations[v1beta1.AnnotationAutoGeneratePersistentPodState]
	return is
}

// Asker is a workload of the name of the PersistentPodState.
type Asker struct {
	Kind     schema.GroupVersionKind
	Metadata metav1.ObjectMeta
}

// Generate returns what is to be done with the PersistentPodState of the name of the workloads; stored is nil where
// there is none. Of several workloads that ask for one, that of the first group and kind gets it.
func Generate(askers []Asker, stored *State) Generation {
	askers = slices.SortedFunc(slices.Values(askers), func(a, b Asker) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind),
			cmp.Compare(a.Kind.Version, b.Kind.Version))
	})
	if stored == nil {
		for i := range askers {
			if asks(&askers[i]) && askers[i].Metadata.DeletionTimestamp == nil {
				return Generation{Action: Create, State: generated(&askers[i])}
			}
		}
		return Generation{}
	}
	owner := metav1.GetControllerOfNoCopy(stored)
	for i := range askers {
		if owner != nil && owner.UID == askers[i].Metadata.UID {
			return regenerate(&askers[i], stored)
		}
	}
	if slices.ContainsFunc(askers, func(a Asker) bool { return asks(&a) && a.Metadata.DeletionTimestamp == nil }) {
		return Generation{Action: Occupied, State: stored}
	}
	return Generation{State: stored}
}

// regenerate decides about a PersistentPodState that the workload controls.
func regenerate(a *Asker, stored *State) Generation {
	switch {
	case a.Metadata.DeletionTimestamp != nil || stored.DeletionTimestamp != nil:
		return Generation{State: stored} // garbage collection deletes the state
	case !asks(a):
		return Generation{Action: Delete, State: stored, Owner: a}
	}
	wanted := generated(a)
	next := stored.DeepCopy()
	if was, is := TargetOf(stored); !is || was != targetOf(a) {
		return Generation{Action: Occupied, State: stored} // the target cannot change
	}
	next.Spec.RequiredPersistentTopology = wanted.Spec.RequiredPersistentTopology
	next.Spec.PreferredPersistentTopology = wanted.Spec.PreferredPersistentTopology
	next.Spec.PersistentPodAnnotations = wanted.Spec.PersistentPodAnnotations
	for _, key := range followed() {
		value, is := wanted.Annotations[key]
		if !is {
			delete(next.Annotations, key)
			continue
		}
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[key] = value
	}
	if apiequality.Semantic.DeepEqual(stored.Spec, next.Spec) &&
		apiequality.Semantic.DeepEqual(stored.Annotations, next.Annotations) {
		return Generation{State: stored}
	}
	return Generation{Action: Update, State: next}
}

// followed are the annotations that a generated PersistentPodState has where its workload has them.
func followed() []string {
	return []string{v1beta1.AnnotationReleaseMissingTopologyAfter, v1beta1.AnnotationRestorePodAnnotations}
}

// asks reports whether a workload asks for a PersistentPodState, with a topology.
func asks(a *Asker) bool {
	of := a.Metadata.Annotations
	return of[v1beta1.AnnotationAutoGeneratePersistentPodState] == "true" &&
		len(split(of[v1beta1.AnnotationRequiredPersistentTopology]))+
			len(split(of[v1beta1.AnnotationPreferredPersistentTopology])) > 0
}

func targetOf(a *Asker) Target {
	return Target{Group: a.Kind.Group, Kind: a.Kind.Kind, Name: a.Metadata.Name}
}

// generated returns the PersistentPodState that a workload asks for.
func generated(a *Asker) *State {
	version, kind := a.Kind.ToAPIVersionAndKind()
	of := a.Metadata.Annotations
	s := &State{ObjectMeta: metav1.ObjectMeta{Namespace: a.Metadata.Namespace, Name: a.Metadata.Name}}
	controls := true
	s.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: version, Kind: kind, Name: a.Metadata.Name, UID: a.Metadata.UID, Controller: &controls,
	}}
	s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: version, Kind: kind, Name: a.Metadata.Name}
	if keys := split(of[v1beta1.AnnotationRequiredPersistentTopology]); len(keys) > 0 {
		s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: keys}
	}
	if keys := split(of[v1beta1.AnnotationPreferredPersistentTopology]); len(keys) > 0 {
		s.Spec.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{{
			Weight: v1beta1.GeneratedPersistentPodStateWeight, Preference: v1beta1.NodeTopologyTerm{Keys: keys},
		}}
	}
	for _, key := range split(of[v1beta1.AnnotationPersistentPodAnnotations]) {
		s.Spec.PersistentPodAnnotations = append(s.Spec.PersistentPodAnnotations, v1beta1.PersistentPodAnnotation{Key: key})
	}
	for _, key := range followed() {
		if value, is := of[key]; is {
			if s.Annotations == nil {
				s.Annotations = map[string]string{}
			}
			s.Annotations[key] = value
		}
	}
	return s
}

// split returns the keys of a list, without spaces around them. An empty key is none.
func split(list string) []string {
	var keys []string
	for key := range strings.SplitSeq(list, ",") {
		if key = strings.TrimSpace(key); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

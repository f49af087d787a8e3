package podstate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// Delete the PersistentPodState. Ask the API server for the latest annotations of the workload before: the records
	// cannot be restored.
	Delete Action = "Delete"
	// Occupied reports that a PersistentPodState of the name exists that the workload does not control. Nothing is to be
	// done.
	Occupied Action = "Occupied"
)

// Asker is a workload of the name of the PersistentPodState.
type Asker = metav1.PartialObjectMetadata

// Generation is the PersistentPodState that the annotations of workloads ask for.
type Generation struct {
	Action Action
	// State to create, or as it is after the update; nil for another action.
	State *State
	// Asker is the workload that State or the deletion is about; nil for another action.
	Asker *Asker
}

// Asks reports whether the annotations of a workload may concern a generated PersistentPodState.
func Asks(annotations map[string]string) bool {
	_, ok := annotations[v1beta1.AnnotationAutoGeneratePersistentPodState]
	return ok
}

// Generate returns what is to be done with the PersistentPodState of the name of the workloads; stored is nil where
// there is none. Of several workloads that ask for one, that of the first kind and group gets it.
func Generate(askers []*Asker, stored *State) Generation {
	askers = slices.SortedFunc(slices.Values(askers), func(a, b *Asker) int {
		return cmp.Compare(a.GroupVersionKind().GroupKind().String(), b.GroupVersionKind().GroupKind().String())
	})
	first := slices.IndexFunc(askers, func(a *Asker) bool { return a.DeletionTimestamp == nil && asks(a) })
	if stored == nil {
		if first < 0 {
			return Generation{}
		}
		return Generation{Action: Create, State: generated(askers[first]), Asker: askers[first]}
	}
	for _, a := range askers {
		if metav1.IsControlledBy(stored, a) {
			return regenerate(a, stored)
		}
	}
	if first < 0 {
		return Generation{}
	}
	return Generation{Action: Occupied}
}

// regenerate decides about a PersistentPodState that the workload controls.
func regenerate(a *Asker, stored *State) Generation {
	if a.DeletionTimestamp != nil || stored.DeletionTimestamp != nil {
		return Generation{} // garbage collection deletes the state
	}
	if !asks(a) {
		return Generation{Action: Delete, Asker: a}
	}
	target, _ := Refer(a.APIVersion, a.Kind, a.Name)
	if is, ok := TargetOf(stored); !ok || is != target {
		return Generation{Action: Occupied} // the target cannot change
	}
	next := *stored
	next.Annotations = maps.Clone(stored.Annotations)
	follow(&next, a)
	if apiequality.Semantic.DeepEqual(stored.Spec, next.Spec) && maps.Equal(stored.Annotations, next.Annotations) {
		return Generation{}
	}
	return Generation{Action: Update, State: &next, Asker: a}
}

// asks reports whether a workload asks for a PersistentPodState, with a topology.
func asks(a *Asker) bool {
	return a.Annotations[v1beta1.AnnotationAutoGeneratePersistentPodState] == "true" &&
		len(split(a, v1beta1.AnnotationRequiredPersistentTopology))+
			len(split(a, v1beta1.AnnotationPreferredPersistentTopology)) > 0
}

// generated returns the PersistentPodState that a workload asks for.
func generated(a *Asker) *State {
	s := &State{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	controls := true
	s.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: a.APIVersion, Kind: a.Kind, Name: a.Name, UID: a.UID, Controller: &controls,
	}}
	s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: a.APIVersion, Kind: a.Kind, Name: a.Name}
	follow(s, a)
	return s
}

// follow changes what the annotations of a workload say of its PersistentPodState.
func follow(s *State, a *Asker) {
	spec := &s.Spec
	spec.RequiredPersistentTopology, spec.PreferredPersistentTopology, spec.PersistentPodAnnotations = nil, nil, nil
	if keys := split(a, v1beta1.AnnotationRequiredPersistentTopology); len(keys) > 0 {
		spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: keys}
	}
	if keys := split(a, v1beta1.AnnotationPreferredPersistentTopology); len(keys) > 0 {
		spec.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{{
			Weight: v1beta1.GeneratedPersistentPodStateWeight, Preference: v1beta1.NodeTopologyTerm{Keys: keys},
		}}
	}
	for _, key := range split(a, v1beta1.AnnotationPersistentPodAnnotations) {
		spec.PersistentPodAnnotations = append(spec.PersistentPodAnnotations, v1beta1.PersistentPodAnnotation{Key: key})
	}
	for _, key := range []string{
		v1beta1.AnnotationReleaseMissingTopologyAfter, v1beta1.AnnotationRestorePodAnnotations,
	} {
		delete(s.Annotations, key)
		if value, ok := a.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value)
		}
	}
}

// split returns the keys that an annotation lists, without spaces around them. It drops empty keys.
func split(a *Asker, annotation string) []string {
	var keys []string
	for key := range strings.SplitSeq(a.Annotations[annotation], ",") {
		if key = strings.TrimSpace(key); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

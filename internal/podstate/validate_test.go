package podstate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

// newPodState is a valid one whose spec is changed by a merge patch.
func newPodState(t testing.TB, patch string) *appsv1beta1.PersistentPodState {
	t.Helper()
	s := &appsv1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	s.Spec.TargetReference = appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	s.Spec.RequiredPersistentTopology = &appsv1beta1.NodeTopologyTerm{Keys: []string{"topology.kubernetes.io/zone"}}
	if err := json.Unmarshal([]byte(patch), &s.Spec); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPersistentPodState(t *testing.T) {
	game := schema.GroupKind{Group: "example.com", Kind: "GameServerSet"}
	for name, c := range map[string]struct {
		why, patch, after string
		kinds             []schema.GroupKind
		want              []string
	}{
		"good": {why: "a StatefulSet and a topology", patch: `{}`},
		"an advanced one": {
			why: "both kinds of StatefulSets", patch: `{"targetRef":{"apiVersion":"apps.kruise.io/v1alpha1"}}`,
		},
		"only preferred": {
			why:   "one of the topologies is enough",
			patch: `{"requiredPersistentTopology":null,"preferredPersistentTopology":[{"weight":1,"preference":{"keys":["zone"]}}]}`,
		},
		"a Deployment": {
			why:   "its pods have no ordinals",
			patch: `{"targetRef":{"kind":"Deployment"}}`,
			want:  []string{"FieldValueInvalid spec.targetRef"},
		},
		"another group": {
			why:   "the group counts",
			patch: `{"targetRef":{"apiVersion":"example.com/v1"}}`,
			want:  []string{"FieldValueInvalid spec.targetRef"},
		},
		"a listed kind": {
			why:   "the installation allows it",
			patch: `{"targetRef":{"apiVersion":"example.com/v2","kind":"GameServerSet"}}`,
			kinds: []schema.GroupKind{game},
		},
		"an unlisted kind": {
			why:   "the installation does not allow it",
			patch: `{"targetRef":{"apiVersion":"example.com/v2","kind":"GameServerSet"}}`,
			want:  []string{"FieldValueInvalid spec.targetRef"},
		},
		"no target": {
			why:   "two faults, as in the reference",
			patch: `{"targetRef":{"apiVersion":"","kind":"","name":""}}`,
			want:  []string{"FieldValueInvalid spec.targetRef", "FieldValueInvalid spec.targetRef"},
		},
		"no version": {
			why:   "it cannot be parsed",
			patch: `{"targetRef":{"apiVersion":"a/b/c"}}`,
			want:  []string{"FieldValueInvalid spec.targetRef"},
		},
		"no name": {
			why:   "there is nothing to refer to",
			patch: `{"targetRef":{"name":""}}`,
			want:  []string{"FieldValueInvalid spec.targetRef"},
		},
		"no topology": {
			why:   "nothing would be restored",
			patch: `{"requiredPersistentTopology":null}`,
			want:  []string{"FieldValueInvalid spec"},
		},
		"no keys": {
			why:   "nothing would be restored",
			patch: `{"requiredPersistentTopology":{"keys":[]}}`,
			want:  []string{"FieldValueRequired spec.requiredPersistentTopology.keys"},
		},
		"a bad key": {
			why:   "no node has it",
			patch: `{"requiredPersistentTopology":{"keys":["zone"," host"]}}`,
			want:  []string{"FieldValueInvalid spec.requiredPersistentTopology.keys[1]"},
		},
		"weights": {
			why:   "API servers accept 1 to 100 on pods",
			patch: `{"preferredPersistentTopology":[{"weight":0,"preference":{"keys":["a"]}},{"weight":101,"preference":{"keys":["b"]}}]}`,
			want: []string{
				"FieldValueInvalid spec.preferredPersistentTopology[0].weight",
				"FieldValueInvalid spec.preferredPersistentTopology[1].weight",
			},
		},
		"a bad annotation": {
			why:   "no pod has it",
			patch: `{"persistentPodAnnotations":[{"key":"a b"}]}`,
			want:  []string{"FieldValueInvalid spec.persistentPodAnnotations[0].key"},
		},
		"a release": {why: "a duration", patch: `{}`, after: "10m"},
		"a bad release": {
			why:   "it would be ignored",
			patch: `{}`,
			after: "soon",
			want:  []string{"FieldValueInvalid metadata.annotations[kruisekit.dev/release-missing-topology-after]"},
		},
		"a negative relase": {
			why:   "it would be ignored",
			patch: `{}`,
			after: "-1m",
			want:  []string{"FieldValueInvalid metadata.annotations[kruisekit.dev/release-missing-topology-after]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPodState(t, c.patch)
			if c.after != "" {
				s.Annotations = map[string]string{appsv1beta1.AnnotationReleaseMissingTopologyAfter: c.after}
			}
			var got []string
			for _, fault := range podstate.Validate(s, c.kinds...) {
				got = append(got, string(fault.Type)+" "+fault.Field)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if faults := podstate.ValidateUpdate(s, s); len(faults) > 0 {
				t.Errorf("no change is %v", faults)
			}
		})
	}
}

// The target of an object is its own, and stays.
func TestPersistentPodStateTarget(t *testing.T) {
	s, other := newPodState(t, `{}`), newPodState(t, `{"targetRef":{"apiVersion":"apps/v1beta2"}}`)
	if faults := podstate.ValidateUpdate(other, s); len(faults) != 1 ||
		faults[0].Type != field.ErrorTypeForbidden || faults[0].Field != "spec.targetRef" {
		t.Errorf("another version is %v", faults)
	}
	if fault := podstate.Conflict(s, []appsv1beta1.PersistentPodState{*other}); fault != nil {
		t.Errorf("an object conflicts with itself: %v", fault)
	}
	other.Name = "other"
	if fault := podstate.Conflict(s, []appsv1beta1.PersistentPodState{*other}); fault == nil ||
		fault.Field != "spec.targetRef" {
		t.Errorf("the same target in another version is %v", fault)
	}
	other.DeletionTimestamp = &metav1.Time{}
	if fault := podstate.Conflict(s, []appsv1beta1.PersistentPodState{*other}); fault != nil {
		t.Errorf("one that terminates conflicts: %v", fault)
	}
}

// FuzzPersistentPodState: the functions neither panic nor change an object.
func FuzzPersistentPodState(f *testing.F) {
	f.Add(`{}`, `{"targetRef":{"apiVersion":"a/b/c"}}`)
	f.Add(`{"preferredPersistentTopology":[{"weight":-1}]}`, `{"persistentPodAnnotations":[{}]}`)
	f.Fuzz(func(t *testing.T, now, before string) {
		s, stored := &appsv1beta1.PersistentPodState{}, &appsv1beta1.PersistentPodState{}
		if json.Unmarshal([]byte(now), &s.Spec) != nil || json.Unmarshal([]byte(before), &stored.Spec) != nil {
			return
		}
		was := s.DeepCopy()
		podstate.Validate(s)
		podstate.ValidateUpdate(s, stored)
		podstate.Conflict(s, []appsv1beta1.PersistentPodState{*stored})
		if diff := cmp.Diff(was, s); diff != "" {
			t.Error(diff)
		}
	})
}

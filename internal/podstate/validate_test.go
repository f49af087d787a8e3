package podstate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

// patched is a valid PersistentPodState whose spec is changed by a merge patch.
func patched(t testing.TB, patch string) *podstate.State {
	t.Helper()
	s := newState(requiring(zone))
	if err := json.Unmarshal([]byte(patch), &s.Spec); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValidate(t *testing.T) {
	const target, annotation = "FieldValueInvalid spec.targetRef",
		"FieldValueInvalid metadata.annotations[kruisekit.dev/release-missing-topology-after]"
	for sentence, c := range map[string]struct{ patch, release, want string }{
		"a StatefulSet and a topology are valid": {patch: `{}`, release: "10m"},
		"an Advanced StatefulSet is valid":       {patch: `{"targetRef":{"apiVersion":"apps.kruise.io/v1alpha1"}}`},
		"a listed kind is valid in any version":  {patch: `{"targetRef":{"apiVersion":"example.com/v2","kind":"Game"}}`},
		"a preferred topology is enough": {
			patch: `{"requiredPersistentTopology":null,
				"preferredPersistentTopology":[{"weight":1,"preference":{"keys":["zone"]}}]}`,
		},
		"the pods of a Deployment have no ordinals": {patch: `{"targetRef":{"kind":"Deployment"}}`, want: target},
		"the group of the target counts":            {patch: `{"targetRef":{"apiVersion":"example.com/v1"}}`, want: target},
		"a target without fields has two errors": {
			patch: `{"targetRef":{"apiVersion":"","kind":"","name":""}}`,
			want:  target + "," + target,
		},
		"the version must be one": {patch: `{"targetRef":{"apiVersion":"a/b/c"}}`, want: target},
		"a target has a name":     {patch: `{"targetRef":{"name":""}}`, want: target},
		"a topology is needed": {
			patch: `{"requiredPersistentTopology":null}`,
			want:  "FieldValueInvalid spec",
		},
		"a topology has keys": {
			patch: `{"requiredPersistentTopology":{"keys":[]}}`,
			want:  "FieldValueRequired spec.requiredPersistentTopology.keys",
		},
		"a key is that of a label": {
			patch: `{"requiredPersistentTopology":{"keys":["zone"," host"]}}`,
			want:  "FieldValueInvalid spec.requiredPersistentTopology.keys[1]",
		},
		"an annotation has a valid key": {
			patch: `{"persistentPodAnnotations":[{"key":"a b"}]}`,
			want:  "FieldValueInvalid spec.persistentPodAnnotations[0].key",
		},
		"pods have weights from 1 to 100": {
			patch: `{"preferredPersistentTopology":[{"weight":0,"preference":{"keys":["a"]}},
				{"weight":101,"preference":{"keys":["b"]}}]}`,
			want: "FieldValueInvalid spec.preferredPersistentTopology[0].weight," +
				"FieldValueInvalid spec.preferredPersistentTopology[1].weight",
		},
		"a release is a duration":      {patch: `{}`, release: "soon", want: annotation},
		"a release is not in the past": {patch: `{}`, release: "-1m", want: annotation},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := patched(t, c.patch)
			s.Annotations = map[string]string{v1beta1.AnnotationReleaseMissingTopologyAfter: c.release}
			var got []string
			for _, fault := range podstate.Validate(s, schema.GroupKind{Group: "example.com", Kind: "Game"}) {
				got = append(got, string(fault.Type)+" "+fault.Field)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ",")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if faults := podstate.ValidateUpdate(s, s); len(faults) > 0 {
				t.Errorf("no change is %v", faults)
			}
		})
	}
}

// TestTargetIsUnique: the target of an object is its own, and stays.
func TestTargetIsUnique(t *testing.T) {
	s, other := patched(t, `{}`), patched(t, `{"targetRef":{"apiVersion":"apps/v1beta2"}}`)
	if faults := podstate.ValidateUpdate(other, s); len(faults) != 1 || faults[0].Error() !=
		"spec.targetRef: Forbidden: must not change" {
		t.Errorf("another version is %v", faults)
	}
	if podstate.Conflicts(s, other) {
		t.Error("an object conflicts with itself")
	}
	if other.Name = "other"; !podstate.Conflicts(s, other) {
		t.Error("the same target in another version does not conflict")
	}
	if other.DeletionTimestamp = (&metav1.Time{}); podstate.Conflicts(s, other) {
		t.Error("an object that terminates conflicts")
	}
}

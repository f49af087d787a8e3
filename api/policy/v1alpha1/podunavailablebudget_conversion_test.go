package v1alpha1_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
	"github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	"github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

func pick[T any](c randfill.Continue, values ...T) T {
	return values[c.Intn(len(values))]
}

func TestPodUnavailableBudgetConversionLosesNothing(t *testing.T) {
	operations := "/metadata/annotations/kruise.io~1pub-protect-operations"
	replicas := "/metadata/annotations/pub.kruise.io~1protect-total-replicas"
	roundtriptest.Check[v1alpha1.PodUnavailableBudget, v1beta1.PodUnavailableBudget](t, roundtriptest.Losses{
		Old: []string{operations, replicas}, // not as this package writes them
		Hub: []string{
			operations, replicas, // beside a field that says otherwise
			"/spec/ignoredPodSelector",
			"/spec/protectOperations", // an unknown one
		},
	},
		func(x *v1beta1.PubOperation, c randfill.Continue) {
			*x = pick(c, v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation,
				v1beta1.PubResizeOperation, "DRAIN")
		},
		func(x *metav1.ObjectMeta, c randfill.Continue) {
			x.Name = c.String(5)
			x.Annotations = map[string]string{}
			if c.Bool() {
				x.Annotations[v1beta1.PubProtectOperationAnnotation] = pick(c, "DELETE", "DELETE, EVICT", "UPDATE,,RESIZE",
					"BOGUS", "")
			}
			if c.Bool() {
				x.Annotations[v1beta1.PubProtectTotalReplicasAnnotation] = pick(c, "15", "+7", "-1", "many", "99999999999", "")
			}
		},
	)
}

func TestPodUnavailableBudgetConversionUp(t *testing.T) {
	cases := map[string]struct {
		why         string
		annotations map[string]string
		operations  []v1beta1.PubOperation
		replicas    *int32
	}{
		"both": {
			why: "annotations become fields",
			annotations: map[string]string{
				v1beta1.PubProtectOperationAnnotation: "DELETE,EVICT", v1beta1.PubProtectTotalReplicasAnnotation: "15",
			},
			operations: []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubEvictOperation},
			replicas:   ptr.To[int32](15),
		},
		"spaces": {
			why:         "users write spaces after commas",
			annotations: map[string]string{v1beta1.PubProtectOperationAnnotation: " DELETE, , EVICT,"},
			operations:  []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubEvictOperation},
		},
		"malformed": {
			why: "a stored object that cannot be converted breaks every list",
			annotations: map[string]string{
				v1beta1.PubProtectOperationAnnotation: "BOGUS,UPDATE", v1beta1.PubProtectTotalReplicasAnnotation: "not-a-number",
			},
			operations: []v1beta1.PubOperation{v1beta1.PubUpdateOperation},
		},
		"zero and less": {
			why:         "any number is a number",
			annotations: map[string]string{v1beta1.PubProtectTotalReplicasAnnotation: "-1"},
			replicas:    ptr.To[int32](-1),
		},
		"none": {why: "there is nothing to read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old, hub := v1alpha1.PodUnavailableBudget{}, v1beta1.PodUnavailableBudget{}
			old.Annotations = c.annotations
			if err := old.ConvertTo(&hub); err != nil {
				t.Fatal(err)
			}
			want := v1beta1.PodUnavailableBudgetSpec{ProtectOperations: c.operations, ProtectTotalReplicas: c.replicas}
			if diff := cmp.Diff(want, hub.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			for key, value := range c.annotations {
				if hub.Annotations[key] != value {
					t.Errorf("%s became %q", key, hub.Annotations[key])
				}
			}
		})
	}
}

func TestPodUnavailableBudgetConversionDown(t *testing.T) {
	cases := map[string]struct {
		why         string
		hub         v1beta1.PodUnavailableBudgetSpec
		annotations map[string]string
		want        map[string]string
	}{
		"both": {
			why: "fields become annotations beside those that are there",
			hub: v1beta1.PodUnavailableBudgetSpec{
				ProtectOperations:    []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubResizeOperation},
				ProtectTotalReplicas: ptr.To[int32](9),
			},
			annotations: map[string]string{"team": "a"},
			want: map[string]string{
				"team": "a", v1beta1.PubProtectOperationAnnotation: "DELETE,RESIZE", v1beta1.PubProtectTotalReplicasAnnotation: "9",
			},
		},
		"annotation without field": {
			why:         "in v1beta1 the field speaks, and it is unset",
			annotations: map[string]string{v1beta1.PubProtectOperationAnnotation: "DELETE"},
			want:        map[string]string{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			hub := v1beta1.PodUnavailableBudget{Spec: c.hub}
			hub.Annotations = maps.Clone(c.annotations)
			old := v1alpha1.PodUnavailableBudget{}
			if err := old.ConvertFrom(&hub); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, withoutConversionData(old.Annotations)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.annotations, hub.Annotations); diff != "" {
				t.Errorf("the source changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodUnavailableBudgetEditsInBetween(t *testing.T) {
	t.Run("unsetting a field lasts", func(t *testing.T) {
		old := v1alpha1.PodUnavailableBudget{}
		old.Annotations = map[string]string{v1beta1.PubProtectOperationAnnotation: "DELETE, EVICT"}
		hub := v1beta1.PodUnavailableBudget{}
		if err := old.ConvertTo(&hub); err != nil {
			t.Fatal(err)
		}
		hub.Spec.ProtectOperations = nil
		back, again := v1alpha1.PodUnavailableBudget{}, v1beta1.PodUnavailableBudget{}
		if err := back.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		if err := back.ConvertTo(&again); err != nil {
			t.Fatal(err)
		}
		if again.Spec.ProtectOperations != nil {
			t.Errorf("the operations came back: %v", again.Spec.ProtectOperations)
		}
	})
	t.Run("ignored pods survive an edit of v1alpha1", func(t *testing.T) {
		hub := v1beta1.PodUnavailableBudget{}
		hub.Spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"debug": "true"}}
		old, again := v1alpha1.PodUnavailableBudget{}, v1beta1.PodUnavailableBudget{}
		if err := old.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		old.Annotations[v1beta1.PubProtectTotalReplicasAnnotation] = "3"
		if err := old.ConvertTo(&again); err != nil {
			t.Fatal(err)
		}
		want := v1beta1.PodUnavailableBudgetSpec{
			IgnoredPodSelector: hub.Spec.IgnoredPodSelector, ProtectTotalReplicas: ptr.To[int32](3),
		}
		if diff := cmp.Diff(want, again.Spec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	})
}

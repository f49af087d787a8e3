package v1alpha1_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestWorkloadSpreadConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.WorkloadSpread, v1beta1.WorkloadSpread](t, roundtriptest.Losses{
		Old: []string{ // empty
			"/status/subsetStatuses/*/conditions/*/reason",
			"/status/versionedSubsetStatuses/*/*/conditions/*/reason",
		},
		Hub: []string{
			"/status/subsetStatuses/*/conditions/*/observedGeneration",
			"/status/versionedSubsetStatuses/*/*/conditions/*/observedGeneration",
			"/status/subsetStatuses/*/conditions/*/reason", // empty, which the schema forbids
			"/status/versionedSubsetStatuses/*/*/conditions/*/reason",
		},
	},
		func(x *metav1.Condition, c randfill.Continue) {
			c.FillNoCustom(x)
			x.Reason = pick(c, v1beta1.SubsetReasonSufficient, v1beta1.SubsetReasonUnknown, "")
		},
		func(x *v1alpha1.WorkloadSpreadSubsetCondition, c randfill.Continue) {
			c.FillNoCustom(x)
			x.Reason = pick(c, v1beta1.SubsetReasonSufficient, v1beta1.SubsetReasonUnknown, "")
		},
	)
}

func TestWorkloadSpreadConversion(t *testing.T) {
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"},
	}}}
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 3, Preference: zone}}
	old := v1alpha1.WorkloadSpread{}
	old.Spec.Subsets = []v1alpha1.WorkloadSpreadSubset{{
		Name: "a", RequiredNodeSelectorTerm: &zone, PreferredNodeSelectorTerms: preferred,
	}}
	old.Status.SubsetStatuses = []v1alpha1.WorkloadSpreadSubsetStatus{{
		Name:       "a",
		Conditions: []v1alpha1.WorkloadSpreadSubsetCondition{{Type: v1beta1.SubsetSchedulable, Status: corev1.ConditionTrue}},
	}}
	hub := v1beta1.WorkloadSpread{}
	if err := old.ConvertTo(&hub); err != nil {
		t.Fatal(err)
	}
	t.Run("selectors of nodes have other names", func(t *testing.T) {
		equal(t, []v1beta1.WorkloadSpreadSubset{{Name: "a", RequiredNodeSelector: &zone, PreferredNodeSelector: preferred}},
			hub.Spec.Subsets)
	})
	t.Run("a condition without a reason gets one", func(t *testing.T) {
		equal(t, []metav1.Condition{{Type: "Schedulable", Status: metav1.ConditionTrue, Reason: "Unknown"}},
			hub.Status.SubsetStatuses[0].Conditions)
	})
	t.Run("an edit of the reason wins", func(t *testing.T) {
		edited, back := hub.DeepCopy(), v1alpha1.WorkloadSpread{}
		edited.Status.SubsetStatuses[0].Conditions[0].Reason = v1beta1.SubsetReasonSufficient
		if err := back.ConvertFrom(edited); err != nil {
			t.Fatal(err)
		}
		equal(t, v1beta1.SubsetReasonSufficient, back.Status.SubsetStatuses[0].Conditions[0].Reason)
	})
	t.Run("absent lists stay absent", func(t *testing.T) {
		empty := v1beta1.WorkloadSpread{}
		if err := new(v1alpha1.WorkloadSpread).ConvertTo(&empty); err != nil {
			t.Fatal(err)
		}
		equal(t, v1beta1.WorkloadSpread{}, empty)
	})
}

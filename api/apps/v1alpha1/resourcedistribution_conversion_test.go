package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestResourceDistributionConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.ResourceDistribution, v1beta1.ResourceDistribution](t, roundtriptest.Losses{})
}

func TestResourceDistributionConversion(t *testing.T) {
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"group": "one"}}
	included := v1beta1.ResourceDistributionTargetNamespaces{List: []v1beta1.ResourceDistributionNamespace{{Name: "ns-1"}}}
	old := v1alpha1.ResourceDistribution{}
	old.Spec.Resource.Raw = []byte(`{"kind": "Secret", "data": {"b": "", "a": ""}}`)
	old.Spec.Targets = v1alpha1.ResourceDistributionTargets{IncludedNamespaces: included, NamespaceLabelSelector: selector}
	old.Status.Conditions = []v1alpha1.ResourceDistributionCondition{{
		Type:             v1beta1.ResourceDistributionConflictOccurred,
		Status:           v1beta1.ResourceDistributionConditionTrue,
		FailedNamespaces: []string{"ns-1"},
	}}
	hub := v1beta1.ResourceDistribution{}
	if err := old.ConvertTo(&hub); err != nil {
		t.Fatal(err)
	}
	equal(t,
		v1beta1.ResourceDistributionTargets{IncludedNamespaces: included, NamespaceSelector: selector}, hub.Spec.Targets)
	equal(t, []v1beta1.ResourceDistributionCondition{{
		Type:             v1beta1.ResourceDistributionConflictOccurred,
		Status:           v1beta1.ResourceDistributionConditionTrue,
		FailedNamespaces: []string{"ns-1"},
	}}, hub.Status.Conditions)
	equal(t, string(old.Spec.Resource.Raw), string(hub.Spec.Resource.Raw)) // its hash is on every copy
}

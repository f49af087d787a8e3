package v1alpha1_test

import (
	"testing"

	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestPersistentPodStateConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.PersistentPodState, v1beta1.PersistentPodState](t, roundtriptest.Losses{},
		func(x *v1alpha1.PersistentPodStateRetentionPolicyType, c randfill.Continue) {
			*x = pick(c, v1alpha1.PersistentPodStateRetentionPolicyWhenScaled,
				v1alpha1.PersistentPodStateRetentionPolicyWhenDeleted, "", "Never")
		},
		func(x *v1beta1.PersistentPodStateRetentionPolicyType, c randfill.Continue) {
			*x = pick(c, v1beta1.PersistentPodStateRetentionPolicyWhenScaled,
				v1beta1.PersistentPodStateRetentionPolicyWhenDeleted, "")
		},
	)
}

func TestPersistentPodStateConversion(t *testing.T) {
	old := v1alpha1.PersistentPodState{Spec: v1alpha1.PersistentPodStateSpec{
		RequiredPersistentTopology: &v1alpha1.NodeTopologyTerm{},
		PreferredPersistentTopology: []v1alpha1.PreferredTopologyTerm{
			{Weight: 7, Preference: v1alpha1.NodeTopologyTerm{NodeTopologyKeys: []string{"kubernetes.io/hostname"}}},
		},
		PersistentPodStateRetentionPolicy: v1alpha1.PersistentPodStateRetentionPolicyWhenDeleted,
	}}
	hub, back := v1beta1.PersistentPodState{}, v1alpha1.PersistentPodState{}
	if err := old.ConvertTo(&hub); err != nil {
		t.Fatal(err)
	}
	equal(t, v1beta1.PersistentPodStateSpec{
		RequiredPersistentTopology: &v1beta1.NodeTopologyTerm{}, // without keys it is still there
		PreferredPersistentTopology: []v1beta1.PreferredTopologyTerm{
			{Weight: 7, Preference: v1beta1.NodeTopologyTerm{Keys: []string{"kubernetes.io/hostname"}}},
		},
		PersistentPodStateRetentionPolicy: v1beta1.PersistentPodStateRetentionPolicyWhenDeleted,
	}, hub.Spec)

	hub.Spec.RequiredPersistentTopology.Keys = []string{"topology.kubernetes.io/zone"}
	if err := back.ConvertFrom(&hub); err != nil {
		t.Fatal(err)
	}
	equal(t, []string{"topology.kubernetes.io/zone"}, back.Spec.RequiredPersistentTopology.NodeTopologyKeys)
}

package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with p.
func (p *PersistentPodState) ConvertTo(hub *v1beta1.PersistentPodState) error {
	return roundtrip.Up(p, hub, persistentPodStateUp, persistentPodStateDown)
}

// ConvertFrom fills p with hub.
func (p *PersistentPodState) ConvertFrom(hub *v1beta1.PersistentPodState) error {
	return roundtrip.Down(hub, p, persistentPodStateUp, persistentPodStateDown)
}

func persistentPodStateUp(p *PersistentPodState, hub *v1beta1.PersistentPodState) {
	hub.ObjectMeta = p.ObjectMeta
	hub.Status = p.Status
	hub.Spec = v1beta1.PersistentPodStateSpec{
		TargetReference:          p.Spec.TargetReference,
		PersistentPodAnnotations: p.Spec.PersistentPodAnnotations,
		PersistentPodStateRetentionPolicy: v1beta1.PersistentPodStateRetentionPolicyType(
			p.Spec.PersistentPodStateRetentionPolicy),
		PreferredPersistentTopology: each(p.Spec.PreferredPersistentTopology,
			func(t PreferredTopologyTerm) v1beta1.PreferredTopologyTerm {
				return v1beta1.PreferredTopologyTerm{
					Weight: t.Weight, Preference: v1beta1.NodeTopologyTerm{Keys: t.Preference.NodeTopologyKeys},
				}
			}),
	}
	if t := p.Spec.RequiredPersistentTopology; t != nil {
		hub.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: t.NodeTopologyKeys}
	}
}

func persistentPodStateDown(hub *v1beta1.PersistentPodState, p *PersistentPodState) {
	p.ObjectMeta = hub.ObjectMeta
	p.Status = hub.Status
	p.Spec = PersistentPodStateSpec{
		TargetReference:                   hub.Spec.TargetReference,
		PersistentPodAnnotations:          hub.Spec.PersistentPodAnnotations,
		PersistentPodStateRetentionPolicy: PersistentPodStateRetentionPolicyType(hub.Spec.PersistentPodStateRetentionPolicy),
		PreferredPersistentTopology: each(hub.Spec.PreferredPersistentTopology,
			func(t v1beta1.PreferredTopologyTerm) PreferredTopologyTerm {
				return PreferredTopologyTerm{Weight: t.Weight, Preference: NodeTopologyTerm{NodeTopologyKeys: t.Preference.Keys}}
			}),
	}
	if t := hub.Spec.RequiredPersistentTopology; t != nil {
		p.Spec.RequiredPersistentTopology = &NodeTopologyTerm{NodeTopologyKeys: t.Keys}
	}
}

package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with r.
func (r *ResourceDistribution) ConvertTo(hub *v1beta1.ResourceDistribution) error {
	return roundtrip.Up(r, hub, resourceDistributionUp, resourceDistributionDown)
}

// ConvertFrom fills r with hub.
func (r *ResourceDistribution) ConvertFrom(hub *v1beta1.ResourceDistribution) error {
	return roundtrip.Down(hub, r, resourceDistributionUp, resourceDistributionDown)
}

func resourceDistributionUp(r *ResourceDistribution, hub *v1beta1.ResourceDistribution) {
	hub.ObjectMeta = r.ObjectMeta
	hub.Spec = v1beta1.ResourceDistributionSpec{
		Resource: r.Spec.Resource,
		Targets: v1beta1.ResourceDistributionTargets{
			AllNamespaces:      r.Spec.Targets.AllNamespaces,
			ExcludedNamespaces: r.Spec.Targets.ExcludedNamespaces,
			IncludedNamespaces: r.Spec.Targets.IncludedNamespaces,
			NamespaceSelector:  r.Spec.Targets.NamespaceLabelSelector,
		},
	}
	hub.Status = v1beta1.ResourceDistributionStatus{
		Desired:            r.Status.Desired,
		Succeeded:          r.Status.Succeeded,
		Failed:             r.Status.Failed,
		ObservedGeneration: r.Status.ObservedGeneration,
		Conditions: each(r.Status.Conditions, func(c ResourceDistributionCondition) v1beta1.ResourceDistributionCondition {
			return v1beta1.ResourceDistributionCondition(c)
		}),
	}
}

func resourceDistributionDown(hub *v1beta1.ResourceDistribution, r *ResourceDistribution) {
	r.ObjectMeta = hub.ObjectMeta
	r.Spec = ResourceDistributionSpec{
		Resource: hub.Spec.Resource,
		Targets: ResourceDistributionTargets{
			AllNamespaces:          hub.Spec.Targets.AllNamespaces,
			ExcludedNamespaces:     hub.Spec.Targets.ExcludedNamespaces,
			IncludedNamespaces:     hub.Spec.Targets.IncludedNamespaces,
			NamespaceLabelSelector: hub.Spec.Targets.NamespaceSelector,
		},
	}
	r.Status = ResourceDistributionStatus{
		Desired:            hub.Status.Desired,
		Succeeded:          hub.Status.Succeeded,
		Failed:             hub.Status.Failed,
		ObservedGeneration: hub.Status.ObservedGeneration,
		Conditions: each(hub.Status.Conditions, func(c v1beta1.ResourceDistributionCondition) ResourceDistributionCondition {
			return ResourceDistributionCondition(c)
		}),
	}
}

package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with d.
func (d *DaemonSet) ConvertTo(hub *v1beta1.DaemonSet) error {
	return roundtrip.Up(d, hub, daemonSetUp, daemonSetDown)
}

// ConvertFrom fills d with hub.
func (d *DaemonSet) ConvertFrom(hub *v1beta1.DaemonSet) error {
	return roundtrip.Down(hub, d, daemonSetUp, daemonSetDown)
}

func daemonSetUp(d *DaemonSet, hub *v1beta1.DaemonSet) {
	hub.ObjectMeta = d.ObjectMeta
	hub.Spec = v1beta1.DaemonSetSpec{
		Selector:             d.Spec.Selector,
		Template:             d.Spec.Template,
		UpdateStrategy:       d.Spec.UpdateStrategy,
		MinReadySeconds:      d.Spec.MinReadySeconds,
		BurstReplicas:        d.Spec.BurstReplicas,
		RevisionHistoryLimit: d.Spec.RevisionHistoryLimit,
		Lifecycle:            d.Spec.Lifecycle,
	}
	if r := d.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Type == DeprecatedSurgingRollingUpdateType {
		standard := *r
		standard.Type = v1beta1.StandardRollingUpdateType
		hub.Spec.UpdateStrategy.RollingUpdate = &standard
	}
	if d.Annotations[ProgressiveCreatePod] == "true" {
		hub.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
	}
	hub.Status = v1beta1.DaemonSetStatus{
		CurrentNumberScheduled: d.Status.CurrentNumberScheduled,
		NumberMisscheduled:     d.Status.NumberMisscheduled,
		DesiredNumberScheduled: d.Status.DesiredNumberScheduled,
		NumberReady:            d.Status.NumberReady,
		ObservedGeneration:     d.Status.ObservedGeneration,
		UpdatedNumberScheduled: d.Status.UpdatedNumberScheduled,
		NumberAvailable:        d.Status.NumberAvailable,
		NumberUnavailable:      d.Status.NumberUnavailable,
		CollisionCount:         d.Status.CollisionCount,
		Conditions:             d.Status.Conditions,
		UpdateRevision:         d.Status.DaemonSetHash,
	}
}

func daemonSetDown(hub *v1beta1.DaemonSet, d *DaemonSet) {
	d.ObjectMeta = hub.ObjectMeta
	d.Annotations = progressiveDown(hub)
	d.Spec = DaemonSetSpec{
		Selector:             hub.Spec.Selector,
		Template:             hub.Spec.Template,
		UpdateStrategy:       hub.Spec.UpdateStrategy,
		MinReadySeconds:      hub.Spec.MinReadySeconds,
		BurstReplicas:        hub.Spec.BurstReplicas,
		RevisionHistoryLimit: hub.Spec.RevisionHistoryLimit,
		Lifecycle:            hub.Spec.Lifecycle,
	}
	d.Status = DaemonSetStatus{
		CurrentNumberScheduled: hub.Status.CurrentNumberScheduled,
		NumberMisscheduled:     hub.Status.NumberMisscheduled,
		DesiredNumberScheduled: hub.Status.DesiredNumberScheduled,
		NumberReady:            hub.Status.NumberReady,
		ObservedGeneration:     hub.Status.ObservedGeneration,
		UpdatedNumberScheduled: hub.Status.UpdatedNumberScheduled,
		NumberAvailable:        hub.Status.NumberAvailable,
		NumberUnavailable:      hub.Status.NumberUnavailable,
		CollisionCount:         hub.Status.CollisionCount,
		Conditions:             hub.Status.Conditions,
		DaemonSetHash:          hub.Status.UpdateRevision,
	}
}

// progressiveDown is the annotations of hub with partitionedScaling among them. A "true" is removed where the
// field says no, so that unsetting the field lasts; another value says no already.
func progressiveDown(hub *v1beta1.DaemonSet) map[string]string {
	wanted := hub.Spec.ScaleStrategy != nil && hub.Spec.ScaleStrategy.PartitionedScaling
	switch {
	case wanted:
		return roundtrip.WithKey(hub.Annotations, ProgressiveCreatePod, "true")
	case hub.Annotations[ProgressiveCreatePod] == "true":
		return roundtrip.WithKey(hub.Annotations, ProgressiveCreatePod, "")
	}
	return hub.Annotations
}

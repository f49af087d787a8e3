package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// ConvertTo converts c to v1beta1. roundtrip.Up keeps fields without a counterpart in an annotation of hub.
func (c *CloneSet) ConvertTo(hub *v1beta1.CloneSet) error {
	return roundtrip.Up(c, hub, cloneSetUp, cloneSetDown)
}

// ConvertFrom converts hub to v1alpha1. roundtrip.Down keeps fields without a counterpart in an annotation of c.
func (c *CloneSet) ConvertFrom(hub *v1beta1.CloneSet) error {
	return roundtrip.Down(hub, c, cloneSetUp, cloneSetDown)
}

func cloneSetUp(c *CloneSet, hub *v1beta1.CloneSet) {
	hub.ObjectMeta = c.ObjectMeta
	hub.Status = c.Status
	from, to := &c.Spec, &hub.Spec
	to.Replicas = from.Replicas
	to.Selector = from.Selector
	to.Template = from.Template
	to.VolumeClaimTemplates = from.VolumeClaimTemplates
	to.RevisionHistoryLimit = from.RevisionHistoryLimit
	to.MinReadySeconds = from.MinReadySeconds
	to.Lifecycle = from.Lifecycle
	to.ProgressDeadlineSeconds = from.ProgressDeadlineSeconds
	to.ScaleStrategy = v1beta1.CloneSetScaleStrategy{
		PodsToDelete:           from.ScaleStrategy.PodsToDelete,
		MaxUnavailable:         from.ScaleStrategy.MaxUnavailable,
		EnablePVCReuse:         !from.ScaleStrategy.DisablePVCReuse,
		ExcludePreparingDelete: c.Labels[kruise.CloneSetScalingExcludePreparingDeleteKey] == "true",
	}
	u := &from.UpdateStrategy
	if u.Type == OnDeleteCloneSetUpdateStrategyType { // v1beta1 has no rolling update fields then; roundtrip keeps them
		to.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDeleteCloneSetUpdateStrategyType}
		return
	}
	to.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{
		Type: v1beta1.RollingUpdateCloneSetUpdateStrategyType,
		RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy:       podUpdatePolicyUp(u.Type),
			Partition:             u.Partition,
			MaxUnavailable:        u.MaxUnavailable,
			MaxSurge:              u.MaxSurge,
			Paused:                u.Paused,
			PriorityStrategy:      u.PriorityStrategy,
			ScatterStrategy:       u.ScatterStrategy,
			InPlaceUpdateStrategy: inPlaceUp(u.InPlaceUpdateStrategy, c.Annotations),
		},
	}
}

// cloneSetDown leaves the label of ExcludePreparingDelete as it is in the metadata. roundtrip keeps a field value that
// differs from the label.
func cloneSetDown(hub *v1beta1.CloneSet, c *CloneSet) {
	c.ObjectMeta = hub.ObjectMeta
	c.Status = hub.Status
	from, to := &hub.Spec, &c.Spec
	to.Replicas = from.Replicas
	to.Selector = from.Selector
	to.Template = from.Template
	to.VolumeClaimTemplates = from.VolumeClaimTemplates
	to.RevisionHistoryLimit = from.RevisionHistoryLimit
	to.MinReadySeconds = from.MinReadySeconds
	to.Lifecycle = from.Lifecycle
	to.ProgressDeadlineSeconds = from.ProgressDeadlineSeconds
	to.ScaleStrategy = CloneSetScaleStrategy{
		PodsToDelete:    from.ScaleStrategy.PodsToDelete,
		MaxUnavailable:  from.ScaleStrategy.MaxUnavailable,
		DisablePVCReuse: !from.ScaleStrategy.EnablePVCReuse,
	}
	to.UpdateStrategy.Type = updateTypeDown(from.UpdateStrategy)
	u := from.UpdateStrategy.RollingUpdate
	if u == nil {
		return
	}
	to.UpdateStrategy.Partition = u.Partition
	to.UpdateStrategy.MaxUnavailable = u.MaxUnavailable
	to.UpdateStrategy.MaxSurge = u.MaxSurge
	to.UpdateStrategy.Paused = u.Paused
	to.UpdateStrategy.PriorityStrategy = u.PriorityStrategy
	to.UpdateStrategy.ScatterStrategy = u.ScatterStrategy
	to.UpdateStrategy.InPlaceUpdateStrategy = inPlaceDown(u.InPlaceUpdateStrategy, &c.Annotations)
}

func podUpdatePolicyUp(t CloneSetUpdateStrategyType) v1beta1.CloneSetPodUpdatePolicyType {
	switch t {
	case InPlaceIfPossibleCloneSetUpdateStrategyType:
		return v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType
	case InPlaceOnlyCloneSetUpdateStrategyType:
		return v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	}
	return v1beta1.RecreateCloneSetPodUpdateStrategyType
}

func updateTypeDown(s v1beta1.CloneSetUpdateStrategy) CloneSetUpdateStrategyType {
	if s.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType {
		return OnDeleteCloneSetUpdateStrategyType
	}
	if s.RollingUpdate != nil {
		switch s.RollingUpdate.PodUpdatePolicy {
		case v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType:
			return InPlaceIfPossibleCloneSetUpdateStrategyType
		case v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType:
			return InPlaceOnlyCloneSetUpdateStrategyType
		}
	}
	return RecreateCloneSetUpdateStrategyType
}

// inPlaceUp returns the v1beta1 strategy. v1alpha1 has the image pre-download settings in annotations. A timeout or a
// minimum of updated pods that is not a number is ignored; the parallelism may be any text.
func inPlaceUp(s *kruise.InPlaceUpdateStrategy, annotations map[string]string) *kruise.InPlaceUpdateStrategy {
	hub := kruise.InPlaceUpdateStrategy{}
	if s != nil {
		hub.GracePeriodSeconds = s.GracePeriodSeconds
	}
	if text, ok := annotations[kruise.ImagePreDownloadParallelismKey]; ok {
		parallelism := intstr.Parse(text)
		hub.ImagePreDownloadParallelism = &parallelism
	}
	hub.ImagePreDownloadTimeoutSeconds = roundtrip.ParseInt32(annotations[kruise.ImagePreDownloadTimeoutSecondsKey])
	hub.ImagePreDownloadMinUpdatedReadyPods = roundtrip.ParseInt32(
		annotations[kruise.ImagePreDownloadMinUpdatedReadyPodsKey])
	if s == nil && hub == (kruise.InPlaceUpdateStrategy{}) {
		return nil
	}
	return &hub
}

// inPlaceDown returns the v1alpha1 strategy, and sets the image pre-download annotations from hub. It removes the
// annotation of an unset field: otherwise inPlaceUp would set the field again.
func inPlaceDown(hub *kruise.InPlaceUpdateStrategy, annotations *map[string]string) *kruise.InPlaceUpdateStrategy {
	var s kruise.InPlaceUpdateStrategy
	if hub != nil {
		s = *hub
	}
	parallelism := ""
	if s.ImagePreDownloadParallelism != nil {
		parallelism = s.ImagePreDownloadParallelism.String()
	}
	*annotations = roundtrip.WithKey(*annotations, kruise.ImagePreDownloadParallelismKey, parallelism)
	*annotations = roundtrip.WithKey(*annotations, kruise.ImagePreDownloadTimeoutSecondsKey,
		roundtrip.FormatInt32(s.ImagePreDownloadTimeoutSeconds))
	*annotations = roundtrip.WithKey(*annotations, kruise.ImagePreDownloadMinUpdatedReadyPodsKey,
		roundtrip.FormatInt32(s.ImagePreDownloadMinUpdatedReadyPods))
	if s == (kruise.InPlaceUpdateStrategy{}) {
		return nil
	}
	return &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: s.GracePeriodSeconds}
}

package v1alpha1

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// shapeOf is the value of CloneSetTemplateShapeKey: the version whose shape the update strategy has, empty for
// that of v1beta1.
func shapeOf(t *CloneSetTemplateSpec) string {
	if t == nil {
		return ""
	}
	u := t.Spec.UpdateStrategy
	switch u.Type {
	case RecreateCloneSetUpdateStrategyType, InPlaceIfPossibleCloneSetUpdateStrategyType,
		InPlaceOnlyCloneSetUpdateStrategyType:
		return GroupVersion.Version
	case CloneSetUpdateStrategyType(v1beta1.RollingUpdateCloneSetUpdateStrategyType):
		return ""
	}
	beside := u.CloneSetUpdateStrategy
	beside.Type = ""
	if u.RollingUpdate != nil || apiequality.Semantic.DeepEqual(beside, CloneSetUpdateStrategy{}) {
		return ""
	}
	return GroupVersion.Version
}

// cloneSetTemplateUp converts a template in the shape of v1alpha1 as the CloneSet that it describes is converted.
func cloneSetTemplateUp(t *CloneSetTemplateSpec) *v1beta1.CloneSetTemplateSpec {
	if t == nil {
		return nil
	}
	set, hub := cloneSetOf(t), v1beta1.CloneSet{}
	cloneSetUp(&set, &hub)
	template := &v1beta1.CloneSetTemplateSpec{ObjectMeta: hub.ObjectMeta, Spec: hub.Spec}
	from, to := &t.Spec.ScaleStrategy, &template.Spec.ScaleStrategy
	if shapeOf(t) != "" {
		to.ExcludePreparingDelete = to.ExcludePreparingDelete || from.ExcludePreparingDelete
		return template
	}
	to.ExcludePreparingDelete = from.ExcludePreparingDelete
	to.EnablePVCReuse = from.EnablePVCReuse
	template.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{
		Type:          v1beta1.CloneSetUpdateStrategyType(t.Spec.UpdateStrategy.Type),
		RollingUpdate: t.Spec.UpdateStrategy.RollingUpdate,
	}
	return template
}

// cloneSetTemplateDown gives the template the shape of a version, as shapeOf names it.
func cloneSetTemplateDown(hub *v1beta1.CloneSetTemplateSpec, shape string) *CloneSetTemplateSpec {
	if hub == nil {
		return nil
	}
	set := CloneSet{}
	cloneSetDown(&v1beta1.CloneSet{ObjectMeta: hub.ObjectMeta, Spec: hub.Spec}, &set)
	t := &CloneSetTemplateSpec{ObjectMeta: set.ObjectMeta, Spec: SubsetCloneSetSpec{
		Replicas:                set.Spec.Replicas,
		Selector:                set.Spec.Selector,
		Template:                set.Spec.Template,
		VolumeClaimTemplates:    set.Spec.VolumeClaimTemplates,
		ScaleStrategy:           SubsetCloneSetScaleStrategy{CloneSetScaleStrategy: set.Spec.ScaleStrategy},
		UpdateStrategy:          SubsetCloneSetUpdateStrategy{CloneSetUpdateStrategy: set.Spec.UpdateStrategy},
		RevisionHistoryLimit:    set.Spec.RevisionHistoryLimit,
		MinReadySeconds:         set.Spec.MinReadySeconds,
		Lifecycle:               set.Spec.Lifecycle,
		ProgressDeadlineSeconds: set.Spec.ProgressDeadlineSeconds,
	}}
	t.Spec.ScaleStrategy.ExcludePreparingDelete = hub.Spec.ScaleStrategy.ExcludePreparingDelete
	if shape == GroupVersion.Version {
		return t
	}
	t.ObjectMeta = hub.ObjectMeta
	t.Spec.ScaleStrategy.DisablePVCReuse = false
	t.Spec.ScaleStrategy.EnablePVCReuse = hub.Spec.ScaleStrategy.EnablePVCReuse
	t.Spec.UpdateStrategy = SubsetCloneSetUpdateStrategy{
		CloneSetUpdateStrategy: CloneSetUpdateStrategy{Type: CloneSetUpdateStrategyType(hub.Spec.UpdateStrategy.Type)},
		RollingUpdate:          hub.Spec.UpdateStrategy.RollingUpdate,
	}
	return t
}

// cloneSetOf is the CloneSet that a template describes in the shape of v1alpha1.
func cloneSetOf(t *CloneSetTemplateSpec) CloneSet {
	return CloneSet{ObjectMeta: t.ObjectMeta, Spec: CloneSetSpec{
		Replicas:                t.Spec.Replicas,
		Selector:                t.Spec.Selector,
		Template:                t.Spec.Template,
		VolumeClaimTemplates:    t.Spec.VolumeClaimTemplates,
		ScaleStrategy:           t.Spec.ScaleStrategy.CloneSetScaleStrategy,
		UpdateStrategy:          t.Spec.UpdateStrategy.CloneSetUpdateStrategy,
		RevisionHistoryLimit:    t.Spec.RevisionHistoryLimit,
		MinReadySeconds:         t.Spec.MinReadySeconds,
		Lifecycle:               t.Spec.Lifecycle,
		ProgressDeadlineSeconds: t.Spec.ProgressDeadlineSeconds,
	}}
}

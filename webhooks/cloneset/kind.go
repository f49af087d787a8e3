package cloneset

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// change is what is done to a CloneSet, under review.
type change = templated.Change[*appsv1beta1.CloneSet]

// kind is CloneSet, as its webhooks look at it.
func kind(api API) templated.Kind[*appsv1beta1.CloneSet] {
	return templated.Kind[*appsv1beta1.CloneSet]{
		Name: "CloneSet",
		Hub:  func() *appsv1beta1.CloneSet { return &appsv1beta1.CloneSet{} },
		Old:  func() templated.Spoke[*appsv1beta1.CloneSet] { return &appsv1alpha1.CloneSet{} },
		Lost: lost, Validate: validation.CloneSet, ValidateUpdate: validation.CloneSetUpdate,
		Lookup:  func(ctx context.Context, r change) (field.ErrorList, error) { return podFaults(ctx, api, r) },
		OldPath: oldPath, Ignores: func(v review.Version, fault *field.Error) bool { return v == review.Old && ignores(fault) },
	}
}

// lost checks what conversion would take for ReCreate, and OnDelete, which v1alpha1 documents and has always rejected: a set that has it
// from v1beta1 can be updated in this version all the same, as a fault that was there before is accepted.
func lost(object templated.Object) field.ErrorList {
	alpha, is := object.(*appsv1alpha1.CloneSet)
	if !is {
		return nil
	}
	known := []appsv1alpha1.CloneSetUpdateStrategyType{
		appsv1alpha1.RecreateCloneSetUpdateStrategyType, appsv1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType,
		appsv1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
	}
	t := alpha.Spec.UpdateStrategy.Type
	if t == "" || slices.Contains(known, t) {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("spec", "updateStrategy", "type"), t, known)}
}

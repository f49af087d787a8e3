package cloneset

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-cloneset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-cloneset"
)

// New returns the webhooks of CloneSets.
func New(api kinds.API, o kinds.Options) (kinds.Webhooks, error) {
	return kinds.New(api, kinds.Row[*appsv1beta1.CloneSet]{
		Kind: appsv1beta1.GroupVersion.WithKind("CloneSet"),
		Hub:  &appsv1beta1.CloneSet{}, Old: &appsv1alpha1.CloneSet{},
		MutatePath: MutatePath, ValidatePath: ValidatePath,
		Validate: validation.CloneSet, ValidateUpdate: validation.CloneSetUpdate,
		Older: older, OldPath: oldPath, Ignores: ignores,
		Lookup:   podFaults,
		Template: &kinds.Template{},
	}, o)
}

// older checks what conversion would take for ReCreate, and OnDelete, which v1alpha1 documents and has always rejected:
// a set that has OnDelete from v1beta1 can be updated in v1alpha1 all the same, because a stored fault is accepted.
func older(object client.Object, faults field.ErrorList) field.ErrorList {
	known := []appsv1alpha1.CloneSetUpdateStrategyType{
		appsv1alpha1.RecreateCloneSetUpdateStrategyType, appsv1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType,
		appsv1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
	}
	set, ok := object.(*appsv1alpha1.CloneSet)
	if !ok || set.Spec.UpdateStrategy.Type == "" || slices.Contains(known, set.Spec.UpdateStrategy.Type) {
		return faults
	}
	at := field.NewPath("spec", "updateStrategy", "type")
	return append(field.ErrorList{field.NotSupported(at, set.Spec.UpdateStrategy.Type, known)}, faults...)
}

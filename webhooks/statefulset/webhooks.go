package statefulset

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-statefulset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-statefulset"
)

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	kinds.Options

	// ExpandClaims defaults and validates volumeClaimUpdateStrategy, for a reconciler that expands claims.
	ExpandClaims bool
}

// New returns the webhooks of StatefulSets.
func New(api kinds.API, o Options) (kinds.Webhooks, error) {
	row := kinds.Row[*appsv1beta1.StatefulSet]{
		Kind: appsv1beta1.GroupVersion.WithKind("StatefulSet"),
		Hub:  &appsv1beta1.StatefulSet{}, Old: &appsv1alpha1.StatefulSet{},
		MutatePath: MutatePath, ValidatePath: ValidatePath,
		Validate: validation.StatefulSet, ValidateUpdate: validation.StatefulSetUpdate,
		Ignores:  ignores,
		Template: &kinds.Template{Incomplete: func(map[string]any) bool { return true }},
	}
	if o.ExpandClaims {
		row.Default, row.Lookup = setDefaults, classFaults
	}
	return kinds.New(api, row, o.Options)
}

// ignores reports whether a fault has a safe reading, and is none for the reference: nothing below zero counts as zero,
// and an unknown strategy of claims as OnDelete.
func ignores(_ bool, fault *field.Error) bool {
	switch fault.Field {
	case "spec.ordinals.start", "spec.revisionHistoryLimit", "spec.volumeClaimUpdateStrategy.type",
		"spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.gracePeriodSeconds":
		return true
	}
	return false
}

// setDefaults also defaults what has a meaning only where claims are expanded.
func setDefaults(object client.Object) {
	switch set := object.(type) {
	case *appsv1alpha1.StatefulSet:
		set.Default()
	case *appsv1beta1.StatefulSet:
		set.Default()
		if set.Spec.VolumeClaimUpdateStrategy.Type == "" {
			set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
		}
	}
}

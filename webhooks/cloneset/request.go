package cloneset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
)

// version is that of a request. Objects in requests have it too.
type version string

const (
	old version = "v1alpha1"
	hub version = "v1beta1"
)

// versionOf returns an error for a request for anything but CloneSets in a known version.
func versionOf(req admission.Request) (version, error) {
	v := version(req.Kind.Version)
	if req.Kind.Group != appsv1beta1.GroupVersion.Group || req.Kind.Kind != "CloneSet" || v != old && v != hub {
		return "", fmt.Errorf("%s/%s %s is no CloneSet of a known version", req.Kind.Group, req.Kind.Version, req.Kind.Kind)
	}
	return v, nil
}

// decode returns an object as v1beta1, and the faults that this version does not show any more.
func (v version) decode(raw []byte) (*appsv1beta1.CloneSet, field.ErrorList, error) {
	set := &appsv1beta1.CloneSet{}
	if v == hub {
		return set, nil, review.Unmarshal(raw, set)
	}
	alpha := &appsv1alpha1.CloneSet{}
	if err := review.Unmarshal(raw, alpha); err != nil {
		return nil, nil, err
	}
	faults := oldType(alpha.Spec.UpdateStrategy.Type)
	if err := alpha.ConvertTo(set); err != nil {
		return nil, nil, err
	}
	return set, faults, nil
}

// oldType checks what conversion would take for ReCreate, and OnDelete, which v1alpha1 documents and has always refused: a set
// that has it from v1beta1 can be updated in this version all the same, as a fault that was there before is let pass.
func oldType(t appsv1alpha1.CloneSetUpdateStrategyType) field.ErrorList {
	known := []appsv1alpha1.CloneSetUpdateStrategyType{
		appsv1alpha1.RecreateCloneSetUpdateStrategyType, appsv1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType,
		appsv1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
	}
	if t == "" || slices.Contains(known, t) {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("spec", "updateStrategy", "type"), t, known)}
}

// content is an object as it was sent, with the parts that no schema describes.
type content map[string]any

func decodeContent(raw []byte) (content, error) {
	return review.Decode(raw)
}

// template is nil where there is none.
func (c content) template() map[string]any {
	spec, _ := c["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	return template
}

func (c content) claims() []any {
	spec, _ := c["spec"].(map[string]any)
	claims, _ := spec["volumeClaimTemplates"].([]any)
	return claims
}

// claimNames has an element for each claim, if need be an empty one.
func (c content) claimNames() []string {
	claims := c.claims()
	names := make([]string, 0, len(claims))
	for _, claim := range claims {
		object, _ := claim.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		names = append(names, name)
	}
	return names
}

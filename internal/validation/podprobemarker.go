package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// PodProbeMarker returns what is invalid in a marker.
func PodProbeMarker(m *v1alpha1.PodProbeMarker) field.ErrorList { return podprobe.Validate(m) }

// PodProbeMarkerUpdate returns the changes that are forbidden.
func PodProbeMarkerUpdate(m, stored *v1alpha1.PodProbeMarker) field.ErrorList {
	return podprobe.ValidateUpdate(m, stored)
}

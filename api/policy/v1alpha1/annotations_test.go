package v1alpha1_test

import (
	"maps"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// withoutConversionData is what a user wrote or should see of annotations; never nil.
func withoutConversionData(annotations map[string]string) map[string]string {
	seen := map[string]string{}
	maps.Copy(seen, annotations)
	delete(seen, kruise.ConversionDataKey)
	return seen
}

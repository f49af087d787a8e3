package cloneset

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
)

const (
	rolling = "spec.updateStrategy.rollingUpdate"
	inPlace = rolling + ".inPlaceUpdateStrategy"
)

// annotated are fields of v1beta1 that are annotations in v1alpha1.
func annotated() map[string]string {
	return map[string]string{
		inPlace + ".imagePreDownloadParallelism":         kruise.ImagePreDownloadParallelismKey,
		inPlace + ".imagePreDownloadTimeoutSeconds":      kruise.ImagePreDownloadTimeoutSecondsKey,
		inPlace + ".imagePreDownloadMinUpdatedReadyPods": kruise.ImagePreDownloadMinUpdatedReadyPodsKey,
	}
}

// translated returns the faults with the paths of the version.
func (v version) translated(faults field.ErrorList) field.ErrorList {
	if v == hub {
		return faults
	}
	faults = slices.Clone(faults)
	for i, fault := range faults {
		moved := *fault
		moved.Field = oldPath(fault.Field)
		faults[i] = &moved
	}
	return faults
}

// oldPath is the path in v1alpha1 of what v1beta1 has at a path.
func oldPath(path string) string {
	if key, ok := annotated()[path]; ok {
		return field.NewPath("metadata", "annotations").Key(key).String()
	}
	switch below, ok := strings.CutPrefix(path, rolling); {
	case ok && below == ".podUpdatePolicy":
		return "spec.updateStrategy.type"
	case ok:
		return "spec.updateStrategy" + below
	}
	return path
}

// ignores reports whether this version accepts a fault: the reference does not validate the annotation.
func (v version) ignores(fault *field.Error) bool {
	_, ok := annotated()[fault.Field]
	return ok && v == old
}

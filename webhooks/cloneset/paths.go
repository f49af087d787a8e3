package cloneset

import (
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

// ignores reports whether v1alpha1 accepts a fault: the reference does not validate the annotation.
func ignores(old bool, fault *field.Error) bool {
	_, ok := annotated()[fault.Field]
	return old && ok
}

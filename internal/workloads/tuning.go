package workloads

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// AnnotatedStrategy returns the tuning of a pre-download that the annotations of a workload have. A field is read where
// its annotation is missing or cannot be parsed. A percentage is one of the replicas.
func AnnotatedStrategy(
	fields *kruise.InPlaceUpdateStrategy, annotations map[string]string, replicas int32,
) kruise.InPlaceUpdateStrategy {
	tuning := ptr.Deref(fields, kruise.InPlaceUpdateStrategy{})
	if n, err := strconv.ParseInt(annotations[kruise.ImagePreDownloadParallelismKey], 10, 32); err == nil && n > 0 {
		tuning.ImagePreDownloadParallelism = ptr.To(intstr.FromInt32(int32(n)))
	}
	if n, err := strconv.ParseInt(annotations[kruise.ImagePreDownloadTimeoutSecondsKey], 10, 32); err == nil && n > 0 {
		tuning.ImagePreDownloadTimeoutSeconds = ptr.To(int32(n))
	}
	if text := annotations[kruise.ImagePreDownloadMinUpdatedReadyPodsKey]; text != "" {
		amount := intstr.Parse(text)
		if n, err := scale.AmountOr(&amount, 0, replicas, scale.RoundUp); err == nil {
			tuning.ImagePreDownloadMinUpdatedReadyPods = ptr.To(n)
		}
	}
	return tuning
}

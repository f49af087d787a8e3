package native

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
)

// restartedAtKey is the annotation of a template in which kubectl rollout restart asks for new pods.
const restartedAtKey = "kubectl.kubernetes.io/restartedAt"

const textRestart = "cannot be restarted in place: metadata.annotations[" + restartedAtKey + "] asks for another pod"

// restart has the pods recreated that are older than the restart that the template asks for. The restart is as old as
// the first revision that has it: the API server sets that time and the age of pods, the value comes from the clock of
// a user. By its age a pod that came back at an old revision is known, too: it goes to the newest one in place.
func restart(in *workload.Input, template *corev1.PodTemplateSpec, have []*appsv1.ControllerRevision, p UpdatePolicy) {
	value := template.Annotations[restartedAtKey]
	if value == "" || !slices.ContainsFunc(in.Instances, func(i workload.Instance) bool {
		return i.Pods[0].Annotations[restartedAtKey] != value
	}) {
		return
	}
	var since *metav1.Time
	for _, rev := range have {
		t, err := revision.Decode(rev.Data.Raw)
		if err == nil && t.Annotations[restartedAtKey] == value && (since == nil || rev.CreationTimestamp.Before(since)) {
			since = &rev.CreationTimestamp
		}
	}
	for k := range in.Instances {
		i := &in.Instances[k]
		if pod := i.Pods[0]; pod.Annotations[restartedAtKey] == value || !pod.CreationTimestamp.Before(since) {
			continue
		}
		if p == InPlaceOnly {
			i.NotInPlace = textRestart
		} else {
			i.Recreate = true // also where the strategy has another pod come back at the old revision
		}
	}
}

package ephemeral

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

// Containers returns what a pod gets: the containers of the template, each with the variable of the job as its last
// one.
func Containers(job *v1alpha1.EphemeralJob) []corev1.EphemeralContainer {
	containers := make([]corev1.EphemeralContainer, len(job.Spec.Template.EphemeralContainers))
	for i := range containers {
		job.Spec.Template.EphemeralContainers[i].DeepCopyInto(&containers[i])
		env := slices.DeleteFunc(containers[i].Env, func(e corev1.EnvVar) bool {
			return e.Name == kruise.EphemeralContainerEnvKey
		})
		containers[i].Env = append(env, corev1.EnvVar{Name: kruise.EphemeralContainerEnvKey, Value: string(job.UID)})
	}
	return containers
}

// Write returns the write that adds the containers of a job to a pod. It fails where the pod is another one, is being
// deleted, has lost a label that the selector reads, or has other ephemeral containers than this one. The API server
// itself rejects a second container of a name.
func Write(job *v1alpha1.EphemeralJob, pod *corev1.Pod) *write.Write {
	ops := append(write.TestUID(pod), write.Test(write.Pointer("metadata", "deletionTimestamp"), nil))
	for _, key := range selectorKeys(job) {
		ops = append(ops, write.TestLabel(pod, key))
	}
	list, have := write.Pointer("spec", "ephemeralContainers"), pod.Spec.EphemeralContainers
	if len(have) == 0 {
		return write.JSON(pod, write.EphemeralContainers,
			append(ops, write.Test(list, nil), write.Add(list, Containers(job)))...)
	}
	for i := range have {
		ops = append(ops, write.Test(list+write.Pointer(strconv.Itoa(i), "name"), have[i].Name))
	}
	for _, c := range Containers(job) {
		ops = append(ops, write.Add(list+"/-", c))
	}
	return write.JSON(pod, write.EphemeralContainers, ops...)
}

// selectorKeys returns the keys of the labels that the selector reads, sorted.
func selectorKeys(job *v1alpha1.EphemeralJob) []string {
	keys := map[string]bool{}
	if s := job.Spec.Selector; s != nil {
		for key := range s.MatchLabels {
			keys[key] = true
		}
		for i := range s.MatchExpressions {
			keys[s.MatchExpressions[i].Key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

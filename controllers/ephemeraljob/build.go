package ephemeraljob

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

// containersOf returns what a pod gets: the containers of the template, each with the variable of the job as its last
// one.
func containersOf(job *ephemeralJob) []corev1.EphemeralContainer {
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

// addition returns the write that adds the containers of a job to a pod. It fails where the pod is another one, is
// being deleted, or has other ephemeral containers than this one. The API server itself rejects a second container of a
// name.
func addition(job *ephemeralJob, pod *corev1.Pod) *write.Write {
	ops := append(write.TestUID(pod), write.Test(write.Pointer("metadata", "deletionTimestamp"), nil))
	list, have := write.Pointer("spec", "ephemeralContainers"), pod.Spec.EphemeralContainers
	if len(have) == 0 {
		return write.JSON(pod, write.EphemeralContainers,
			append(ops, write.Test(list, nil), write.Add(list, containersOf(job)))...)
	}
	for i := range have {
		ops = append(ops, write.Test(list+write.Pointer(strconv.Itoa(i), "name"), have[i].Name))
	}
	for _, c := range containersOf(job) {
		ops = append(ops, write.Add(list+"/-", c))
	}
	return write.JSON(pod, write.EphemeralContainers, ops...)
}

package imagepull

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// MayUse reports whether a pull of a tag may log in with a secret that its NodeImage names. A NodeImage keeps secrets
// by repository, which jobs of several namespaces may pull: a copy is for the jobs that refer to it alone, and a secret
// that is no copy for jobs of its namespace. A tag without a job, which an administrator wrote, may use all.
func MayUse(s *corev1.Secret, t v1beta1.ImageTagSpec) bool {
	users := usersOf(s)
	jobs := jobsOf(t)
	return len(jobs) == 0 || slices.ContainsFunc(jobs, func(job corev1.ObjectReference) bool {
		if len(users) == 0 {
			return job.Namespace == homeOf(s)
		}
		return slices.Contains(users, job.Namespace+"/"+job.Name)
	})
}

// MayComeToUse reports whether other users of a secret can change what MayUse reports: one of the tag's jobs is in the
// namespace that the secret is from.
func MayComeToUse(s *corev1.Secret, t v1beta1.ImageTagSpec) bool {
	return slices.ContainsFunc(jobsOf(t), func(job corev1.ObjectReference) bool { return job.Namespace == homeOf(s) })
}

// Namespaces returns the namespaces of the pull jobs that own a tag, sorted, each once.
func Namespaces(t v1beta1.ImageTagSpec) []string {
	var all []string
	for _, job := range jobsOf(t) {
		all = append(all, job.Namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// jobsOf returns the pull jobs that own a tag.
func jobsOf(t v1beta1.ImageTagSpec) []corev1.ObjectReference {
	return slices.DeleteFunc(slices.Clone(t.OwnerReferences), func(o corev1.ObjectReference) bool { return !isJob(o) })
}

func isJob(o corev1.ObjectReference) bool {
	return o.Kind == "ImagePullJob" && ofOurGroup(o.APIVersion)
}

// homeOf returns the namespace that a secret is from, of a copy that of its source.
func homeOf(s *corev1.Secret) string {
	if namespace, _, found := strings.Cut(s.Annotations[v1beta1.ImagePullSecretSourceKey], "/"); found {
		return namespace
	}
	return s.Namespace
}

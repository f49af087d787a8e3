package sidecar

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// transferred returns the variables that a container copies from containers of the pod. A variable that is missing is
// left out.
func (in *injector) transferred(set *Set, sc *part) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, t := range sc.TransferEnv {
		source := t.SourceContainerName
		if t.SourceContainerNameFrom != nil && t.SourceContainerNameFrom.FieldRef != nil {
			path := t.SourceContainerNameFrom.FieldRef.FieldPath
			if source = labelOrAnnotation(in.pod, path); source == "" {
				in.note(NoteNotTransferred, set,
					"container %s is to copy variables of the container in %s, where the pod has no name", sc.Name, path)
				continue
			}
		}
		i := slices.IndexFunc(in.sources, func(c *corev1.Container) bool { return c.Name == source })
		if i < 0 {
			in.note(NoteNotTransferred, set, "container %s is to copy variables of container %q, which the pod does not have",
				sc.Name, source)
			continue
		}
		for _, name := range envNames(&t) {
			e := lastEnv(in.sources[i].Env, name)
			if e == nil {
				in.note(NoteNotTransferred, set, "container %s is to copy variable %s, which container %s does not have", sc.Name,
					name, source)
				continue
			}
			env = append(env, *e)
		}
	}
	return env
}

// envNames returns the names to copy, sorted.
func envNames(t *appsv1beta1.TransferEnvVar) []string {
	names := slices.Clone(t.EnvNames)
	if t.EnvName != "" {
		names = append(names, t.EnvName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// labelOrAnnotation returns the value of a label or an annotation: metadata.labels['KEY'] or
// metadata.annotations['KEY']. It is empty for any other path.
func labelOrAnnotation(pod *corev1.Pod, path string) string {
	path, ok := strings.CutSuffix(path, "']")
	if !ok {
		return ""
	}
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return pod.Labels[key]
	}
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return pod.Annotations[key]
	}
	return ""
}

package lean

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Environment returns the variables that are read of a cached pod: those of features, those that come from labels and
// annotations, and others of their names, since of two variables with a name the last one has effect.
func Environment(all []corev1.EnvVar) []corev1.EnvVar {
	names := map[string]bool{}
	for i := range all {
		if e := &all[i]; ofFeature(e.Name) || isFed(e) {
			names[e.Name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	n := 0
	for i := range all {
		if names[all[i].Name] {
			n++
		}
	}
	kept := make([]corev1.EnvVar, 0, n)
	for i := range all {
		if names[all[i].Name] {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// isFed reports whether a variable comes from a label or an annotation.
func isFed(e *corev1.EnvVar) bool {
	if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
		return false
	}
	path := e.ValueFrom.FieldRef.FieldPath
	return strings.HasPrefix(path, "metadata.labels[") || strings.HasPrefix(path, "metadata.annotations[")
}

func ofFeature(name string) bool {
	return slices.Contains([]string{
		kruise.EphemeralContainerEnvKey, kruise.ContainerLaunchPriorityEnvName, kruise.ContainerLaunchBarrierEnvName,
		kruise.SidecarInjectedEnvName,
		kruise.SidecarSetVersionEnvName, kruise.SidecarSetVersionAltEnvName, kruise.TerminateSidecarEnvName,
		kruise.TerminateSidecarWithImageEnvName, kruise.TerminateSidecarIgnoreExitCodeEnvName,
	}, name)
}

package sidecar

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// merge adds to the pod what was collected.
func (in *injector) merge() error {
	if len(in.inits)+len(in.containers) == 0 {
		return nil // nothing but annotations
	}
	sortByName(in.inits)
	if in.o.SortContainers {
		sortByName(in.containers)
	}
	spec := &in.pod.Spec
	spec.InitContainers = in.mergeContainers(spec.InitContainers, in.inits)
	spec.Containers = in.mergeContainers(spec.Containers, in.containers)
	spec.Volumes = append(spec.Volumes, in.volumes...)
	spec.ImagePullSecrets = mergeSecrets(spec.ImagePullSecrets, in.secrets)
	if err := in.recordWorking(); err != nil {
		return err
	}
	return in.record(in.sets)
}

func sortByName(containers []added) {
	slices.SortStableFunc(containers, func(a, b added) int { return cmp.Compare(a.Name, b.Name) })
}

// mergeContainers replaces containers of the same name, and puts the others before or after the existing ones.
func (in *injector) mergeContainers(have []corev1.Container, add []added) []corev1.Container {
	if len(add) == 0 {
		return have
	}
	var before, after []corev1.Container
	for i := range add {
		a := &add[i]
		at := indexOf(have, a.Name)
		switch {
		case at >= 0:
			if !IsInjected(&have[at]) {
				in.note(NoteReplaced, a.set, "container %s of the pod is replaced", a.Name)
			}
			have[at] = a.Container
		case a.before:
			before = append(before, a.Container)
		default:
			after = append(after, a.Container)
		}
	}
	return slices.Concat(before, have, after)
}

// mergeSecrets returns each secret once.
func mergeSecrets(have, add []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	var all []corev1.LocalObjectReference
	known := map[corev1.LocalObjectReference]bool{}
	for _, s := range slices.Concat(have, add) {
		if !known[s] {
			known[s] = true
			all = append(all, s)
		}
	}
	return all
}

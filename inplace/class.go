package inplace

import (
	corev1 "k8s.io/api/core/v1"
)

// QOSClass returns the QoS class of pods with a spec in which requests default to limits, as the API server stores it.
func QOSClass(s *corev1.PodSpec) corev1.PodQOSClass {
	if s.Resources != nil {
		return classOfAll([]corev1.ResourceRequirements{*s.Resources})
	}
	all := make([]corev1.ResourceRequirements, 0, len(s.InitContainers)+len(s.Containers))
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			all = append(all, list[i].Resources)
		}
	}
	return classOfAll(all)
}

func classOfAll(all []corev1.ResourceRequirements) corev1.PodQOSClass {
	guaranteed, none := true, true
	for _, r := range all {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if !request.IsZero() || !limit.IsZero() {
				none = false
			}
			if limit.IsZero() || request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case none:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

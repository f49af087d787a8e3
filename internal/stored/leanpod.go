package stored

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/ledger"
)

// LeanPod drops from a pod what no reconciler and no lookup of a webhook reads of the manager's cache.
func LeanPod(pod *corev1.Pod) {
	record(pod)
	pod.ManagedFields = nil
	full := &pod.Spec
	pod.Spec = corev1.PodSpec{
		NodeName:                      full.NodeName,
		ActiveDeadlineSeconds:         full.ActiveDeadlineSeconds,
		NodeSelector:                  full.NodeSelector,
		Affinity:                      required(full.Affinity),
		Tolerations:                   full.Tolerations,
		HostNetwork:                   full.HostNetwork,
		RestartPolicy:                 full.RestartPolicy,
		TerminationGracePeriodSeconds: full.TerminationGracePeriodSeconds,
		ReadinessGates:                full.ReadinessGates,
		SchedulingGates:               full.SchedulingGates,
		Resources:                     full.Resources,
		Overhead:                      full.Overhead,
		Volumes:                       claimed(full.Volumes),
		InitContainers:                containers(full.InitContainers),
		Containers:                    containers(full.Containers),
		EphemeralContainers:           ephemeral(full.EphemeralContainers),
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			statuses[i].VolumeMounts, statuses[i].User, statuses[i].AllocatedResources,
				statuses[i].AllocatedResourcesStatus = nil, nil, nil, nil
		}
	}
	pod.Status.HostIPs, pod.Status.PodIPs = nil, nil
}

// required returns the node affinity that a node must meet.
func required(full *corev1.Affinity) *corev1.Affinity {
	if full == nil || full.NodeAffinity == nil || full.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: full.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
	}}
}

// claimed returns the volumes of claims.
func claimed(full []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range full {
		if claim := full[i].PersistentVolumeClaim; claim != nil {
			kept = append(kept, corev1.Volume{
				Name: full[i].Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim},
			})
		}
	}
	return kept
}

// containers keep their order, by which patches address them.
func containers(full []corev1.Container) []corev1.Container {
	if len(full) == 0 {
		return nil
	}
	kept := make([]corev1.Container, len(full))
	for i := range full {
		c := &full[i]
		kept[i] = corev1.Container{
			Name:               c.Name,
			Image:              c.Image,
			ImagePullPolicy:    c.ImagePullPolicy,
			Env:                LeanEnvironment(c.Env),
			Ports:              c.Ports,
			Resources:          c.Resources,
			ResizePolicy:       c.ResizePolicy,
			RestartPolicy:      c.RestartPolicy,
			RestartPolicyRules: c.RestartPolicyRules,
			Lifecycle:          preStop(c.Lifecycle),
		}
	}
	return kept
}

// preStop returns the hook that ContainerRecreateRequests copy.
func preStop(full *corev1.Lifecycle) *corev1.Lifecycle {
	if full == nil || full.PreStop == nil {
		return nil
	}
	return &corev1.Lifecycle{PreStop: full.PreStop}
}

func ephemeral(full []corev1.EphemeralContainer) []corev1.EphemeralContainer {
	if len(full) == 0 {
		return nil
	}
	kept := make([]corev1.EphemeralContainer, len(full))
	for i := range full {
		kept[i].Name, kept[i].Image, kept[i].Env = full[i].Name, full[i].Image, LeanEnvironment(full[i].Env)
	}
	return kept
}

// LeanEnvironment returns the variables that are read of a cached pod: those of features, those from labels and
// annotations, and others of their names, since of two variables with a name the last one has effect.
func LeanEnvironment(all []corev1.EnvVar) []corev1.EnvVar {
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

// NewPodWrites returns a ledger of lean pods: an answer lies in it until the next pass.
func NewPodWrites(live client.Reader, now func() time.Time) *ledger.Ledger[*corev1.Pod] {
	return ledger.New[*corev1.Pod](live, now).Keeping(kept)
}

// kept shares with the answer what LeanPod leaves as it is: nothing writes to an answer.
func kept(pod *corev1.Pod) *corev1.Pod {
	slim := *pod
	if _, ok := pod.Annotations[kruise.RuntimeContainerMetaKey]; ok { // which LeanPod may replace
		slim.Annotations = maps.Clone(pod.Annotations)
	}
	for _, statuses := range []*[]corev1.ContainerStatus{
		&slim.Status.InitContainerStatuses, &slim.Status.ContainerStatuses, &slim.Status.EphemeralContainerStatuses,
	} {
		*statuses = slices.Clone(*statuses)
	}
	LeanPod(&slim)
	return &slim
}

// record replaces the hashes of kubelets before 1.31, which are of a whole container, by those of later ones, in what a
// daemon has recorded of the pod. A lean container cannot be compared with the hash of the whole. Nothing writes this
// annotation but the daemon.
func record(pod *corev1.Pod) {
	text, ok := pod.Annotations[kruise.RuntimeContainerMetaKey]
	if !ok {
		return
	}
	var set kruise.RuntimeContainerMetaSet
	if json.Unmarshal([]byte(text), &set) != nil {
		return
	}
	changed := false
	for i := range set.Containers {
		meta := &set.Containers[i]
		at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == meta.Name })
		if at < 0 {
			continue
		}
		later, older, err := inplace.PlainHashes(&pod.Spec.Containers[at])
		if err == nil && meta.Hashes.PlainHash == older && older != later {
			meta.Hashes.PlainHash, changed = later, true
		}
	}
	if !changed {
		return
	}
	if data, err := json.Marshal(set); err == nil {
		pod.Annotations[kruise.RuntimeContainerMetaKey] = string(data)
	}
}

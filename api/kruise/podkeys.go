package kruise

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Keys are the names under which updates in place, hooks, scaling and launch order keep on pods what they know. An
// empty field is the name of OpenKruise, so that nil and the zero value have all of its names. The formats of the
// values are the same under any name.
//
// +kubebuilder:object:generate=false
type Keys struct {
	// InPlaceState and InPlaceGrace are annotations: how far an update has come, and the change that waits for the end
	// of a grace period.
	InPlaceState, InPlaceGrace string
	// PendingRevision and PlannedRestarts are annotations: what the revision label becomes when an update is complete,
	// and the restarts that updates explain.
	PendingRevision, PlannedRestarts string
	// InPlaceReady is the readiness gate that an update closes.
	InPlaceReady corev1.PodConditionType
	// PodReady is the readiness gate that hooks and other writers close with their entries.
	PodReady corev1.PodConditionType
	// LifecycleState is a label, LifecycleTimestamp the annotation with the time of its last change.
	LifecycleState, LifecycleTimestamp string
	// Revision is the label with the revision of a pod.
	Revision string
	// SpecifiedDelete is the label that asks for the deletion of a pod.
	SpecifiedDelete string
	// LaunchPriority and LaunchCompleted are annotations, LaunchPriorityEnv and LaunchBarrierEnv are variables of
	// containers.
	LaunchPriority, LaunchCompleted, LaunchPriorityEnv, LaunchBarrierEnv string
	// Older are names of before. They are read where a pod does not have the own name, and removed by the write of the
	// own one. Readiness gates of a pod cannot change, so a pod keeps its older gate. Older names of Older do not count.
	Older []Keys
}

// A Name is a method of Keys that returns the name of one key.
//
// +kubebuilder:object:generate=false
type Name func(*Keys) string

// Lookup returns the name under which values have a key, and the value: the own name, or the first older one. Where
// values have none, it returns the own name.
func (k *Keys) Lookup(values map[string]string, name Name) (found, value string, has bool) {
	own := name(k)
	if value, has = values[own]; has || k == nil {
		return own, value, has
	}
	for i := range k.Older {
		older := name(&k.Older[i])
		if value, has = values[older]; has {
			return older, value, has
		}
	}
	return own, "", false
}

// IsName reports whether a name is the own one of a key, or an older one.
func (k *Keys) IsName(found string, name Name) bool {
	if found == name(k) || k == nil {
		return found == name(k)
	}
	return slices.ContainsFunc(k.Older, func(older Keys) bool { return found == name(&older) })
}

// RemoveOlder adds to changes the removal of the older names of a key, but for one that is the own name, too.
func (k *Keys) RemoveOlder(changes map[string]*string, name Name) {
	if k == nil {
		return
	}
	own := name(k)
	for i := range k.Older {
		if older := name(&k.Older[i]); older != own {
			changes[older] = nil
		}
	}
}

// RevisionOf returns the revision in the label of a pod.
func (k *Keys) RevisionOf(pod *corev1.Pod) string {
	_, value, _ := k.Lookup(pod.Labels, (*Keys).RevisionKey)
	return value
}

// StateOf returns the state in the label of a pod. A pod without the label counts as Normal.
func (k *Keys) StateOf(pod *corev1.Pod) LifecycleState {
	_, value, _ := k.Lookup(pod.Labels, (*Keys).LifecycleStateKey)
	return LifecycleState(value)
}

// IsSpecifiedDelete reports whether the label of a pod asks for its deletion.
func (k *Keys) IsSpecifiedDelete(pod *corev1.Pod) bool {
	_, _, has := k.Lookup(pod.Labels, (*Keys).SpecifiedDeleteKey)
	return has
}

// InPlaceReadyOf returns which readiness gate of a pod an update closes: the own one, or an older one that the pod has.
func (k *Keys) InPlaceReadyOf(pod *corev1.Pod) corev1.PodConditionType {
	return k.gateOf(pod, (*Keys).InPlaceReadyGate)
}

// PodReadyOf returns which readiness gate of a pod hooks close: the own one, or an older one that the pod has.
func (k *Keys) PodReadyOf(pod *corev1.Pod) corev1.PodConditionType {
	return k.gateOf(pod, (*Keys).PodReadyGate)
}

func (k *Keys) gateOf(pod *corev1.Pod, gate func(*Keys) corev1.PodConditionType) corev1.PodConditionType {
	own := gate(k)
	if k == nil || hasGate(pod, own) {
		return own
	}
	for i := range k.Older {
		if older := gate(&k.Older[i]); hasGate(pod, older) {
			return older
		}
	}
	return own
}

func hasGate(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == condition
	})
}

func or[T comparable](k *Keys, field func(*Keys) T, standard T) T {
	if k == nil {
		return standard
	}
	return cmp.Or(field(k), standard)
}

// InPlaceStateKey is the name of InPlaceState.
func (k *Keys) InPlaceStateKey() string {
	return or(k, func(k *Keys) string { return k.InPlaceState }, InPlaceUpdateStateKey)
}

// InPlaceGraceKey is the name of InPlaceGrace.
func (k *Keys) InPlaceGraceKey() string {
	return or(k, func(k *Keys) string { return k.InPlaceGrace }, InPlaceUpdateGraceKey)
}

// PendingRevisionKey is the name of PendingRevision.
func (k *Keys) PendingRevisionKey() string {
	return or(k, func(k *Keys) string { return k.PendingRevision }, PendingRevisionKey)
}

// PlannedRestartsKey is the name of PlannedRestarts.
func (k *Keys) PlannedRestartsKey() string {
	return or(k, func(k *Keys) string { return k.PlannedRestarts }, PlannedRestartsKey)
}

// InPlaceReadyGate is the own gate InPlaceReady.
func (k *Keys) InPlaceReadyGate() corev1.PodConditionType {
	return or(k, func(k *Keys) corev1.PodConditionType { return k.InPlaceReady }, InPlaceUpdateReady)
}

// PodReadyGate is the own gate PodReady.
func (k *Keys) PodReadyGate() corev1.PodConditionType {
	return or(k, func(k *Keys) corev1.PodConditionType { return k.PodReady }, KruisePodReadyConditionType)
}

// LifecycleStateKey is the name of LifecycleState.
func (k *Keys) LifecycleStateKey() string {
	return or(k, func(k *Keys) string { return k.LifecycleState }, LifecycleStateKey)
}

// LifecycleTimestampKey is the name of LifecycleTimestamp.
func (k *Keys) LifecycleTimestampKey() string {
	return or(k, func(k *Keys) string { return k.LifecycleTimestamp }, LifecycleTimestampKey)
}

// RevisionKey is the name of Revision.
func (k *Keys) RevisionKey() string {
	return or(k, func(k *Keys) string { return k.Revision }, PodRevisionLabelKey)
}

// SpecifiedDeleteKey is the name of SpecifiedDelete.
func (k *Keys) SpecifiedDeleteKey() string {
	return or(k, func(k *Keys) string { return k.SpecifiedDelete }, SpecifiedDeleteKey)
}

// LaunchPriorityKey is the name of LaunchPriority.
func (k *Keys) LaunchPriorityKey() string {
	return or(k, func(k *Keys) string { return k.LaunchPriority }, ContainerLaunchPriorityKey)
}

// LaunchCompletedKey is the name of LaunchCompleted.
func (k *Keys) LaunchCompletedKey() string {
	return or(k, func(k *Keys) string { return k.LaunchCompleted }, ContainerLaunchPriorityCompletedKey)
}

// LaunchPriorityEnvName is the name of LaunchPriorityEnv.
func (k *Keys) LaunchPriorityEnvName() string {
	return or(k, func(k *Keys) string { return k.LaunchPriorityEnv }, ContainerLaunchPriorityEnvName)
}

// LaunchBarrierEnvName is the name of LaunchBarrierEnv.
func (k *Keys) LaunchBarrierEnvName() string {
	return or(k, func(k *Keys) string { return k.LaunchBarrierEnv }, ContainerLaunchBarrierEnvName)
}

package podprobe

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Outcome is the result of a probe in a pod.
type Outcome struct {
	// Marker is the name of the marker that has the probe.
	Marker string
	// Probe is that of the marker.
	Probe *v1alpha1.PodContainerProbe
	// State is what was found.
	State v1alpha1.ContainerProbeState
	// MarkersOnly leaves the condition out, because it is where the state comes from.
	MarkersOnly bool
}

// Outcomes returns the results that a node reported for a pod, in the order of the report. Markers are those of the
// namespace of the pod. Results of markers and probes that do not exist, or that are being deleted, are left out.
func Outcomes(states []v1alpha1.ContainerProbeState, markers []*v1alpha1.PodProbeMarker) []Outcome {
	var all []Outcome
	for i := range states {
		name, probe, ok := MarkerOf(states[i].Name)
		if !ok {
			continue
		}
		m := slices.IndexFunc(markers, func(m *v1alpha1.PodProbeMarker) bool {
			return m.Name == name && m.DeletionTimestamp == nil
		})
		if m < 0 {
			continue
		}
		p := slices.IndexFunc(markers[m].Spec.Probes, func(p v1alpha1.PodContainerProbe) bool { return p.Name == probe })
		if p >= 0 {
			all = append(all, Outcome{Marker: name, Probe: &markers[m].Spec.Probes[p], State: states[i]})
		}
	}
	return all
}

// FromConditions returns the results that the provider of a virtual node wrote into the conditions of a pod, in the
// order of the markers' names.
func FromConditions(pod *corev1.Pod, markers []*v1alpha1.PodProbeMarker) []Outcome {
	var all []Outcome
	for _, m := range Selecting(pod, markers) {
		for i := range m.Spec.Probes {
			p := &m.Spec.Probes[i]
			if p.PodConditionType == "" || len(p.MarkerPolicy) == 0 {
				continue
			}
			c := lifecycle.ConditionOf(pod, corev1.PodConditionType(p.PodConditionType))
			if c == nil {
				continue
			}
			state := v1alpha1.ProbeUnknown
			switch c.Status {
			case corev1.ConditionTrue:
				state = v1alpha1.ProbeSucceeded
			case corev1.ConditionFalse:
				state = v1alpha1.ProbeFailed
			}
			all = append(all, Outcome{
				Marker: m.Name, Probe: p, MarkersOnly: true,
				State: v1alpha1.ContainerProbeState{
					Name: NameOf(m.Name, p.Name), State: state, LastTransitionTime: c.LastTransitionTime,
				},
			})
		}
	}
	return all
}

// Marking is what changes in a pod.
type Marking struct {
	// Conditions are those that are written.
	Conditions []corev1.PodCondition
	// Labels and Annotations are those that change. Nil removes one.
	Labels, Annotations map[string]*string
	// Notes are about the conditions that are not written.
	Notes []note.Note

	pod *corev1.Pod
}

// Mark returns what results change in a pod. Of several results for one condition the first counts, of several for one
// label or annotation the last. A result that is not known yet revokes a condition that is True, and leaves labels and
// annotations as they are.
func Mark(pod *corev1.Pod, outcomes []Outcome) Marking {
	m := Marking{pod: pod}
	claimed, labels, annotations := map[string]bool{}, map[string]*string{}, map[string]*string{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Probe == nil {
			continue
		}
		if is := o.Probe.PodConditionType; is != "" && !o.MarkersOnly {
			m.condition(o, claimed[is])
			claimed[is] = claimed[is] || isState(o.State.State)
		}
		if o.State.State == v1alpha1.ProbeSucceeded || o.State.State == v1alpha1.ProbeFailed {
			apply(o, labels, annotations)
		}
	}
	m.Labels = differing(pod.Labels, labels)
	m.Annotations = differing(pod.Annotations, annotations)
	return m
}

func isState(s v1alpha1.ProbeState) bool {
	return s == v1alpha1.ProbeSucceeded || s == v1alpha1.ProbeFailed || s == v1alpha1.ProbeUnknown
}

// condition writes the condition of a result, if no other result has claimed it.
func (m *Marking) condition(o *Outcome, claimed bool) {
	is := corev1.PodConditionType(o.Probe.PodConditionType)
	switch {
	case !isState(o.State.State):
		return
	case IsReserved(string(is)):
		m.Notes = append(m.Notes,
			newNote(NoteReserved, o.Marker, "condition "+string(is)+" belongs to the kubelet or to a workload"))
		return
	case claimed:
		m.Notes = append(m.Notes, newNote(NoteClaimed, o.Marker, "condition "+string(is)+" shows another probe"))
		return
	}
	had, status := lifecycle.ConditionOf(m.pod, is), corev1.ConditionFalse
	switch o.State.State {
	case v1alpha1.ProbeSucceeded:
		status = corev1.ConditionTrue
	case v1alpha1.ProbeUnknown:
		if had == nil || had.Status != corev1.ConditionTrue {
			return
		}
		status = corev1.ConditionUnknown
	}
	if had != nil && had.Status == status && had.Message == o.State.Message {
		return
	}
	m.Conditions = append(m.Conditions, corev1.PodCondition{
		Type: is, Status: status, Message: o.State.Message,
		LastProbeTime: o.State.LastProbeTime, LastTransitionTime: o.State.LastTransitionTime,
	})
}

// apply removes what the other policies of a probe set, and sets what the policy of the state does.
func apply(o *Outcome, labels, annotations map[string]*string) {
	var matched *v1alpha1.ProbeMarkerPolicy
	for i := range o.Probe.MarkerPolicy {
		policy := &o.Probe.MarkerPolicy[i]
		if policy.State == o.State.State {
			if matched == nil {
				matched = policy
			}
			continue
		}
		for key := range policy.Labels {
			labels[key] = nil
		}
		for key := range policy.Annotations {
			annotations[key] = nil
		}
	}
	if matched == nil {
		return
	}
	for key, value := range matched.Labels {
		labels[key] = &value
	}
	for key, value := range matched.Annotations {
		annotations[key] = &value
	}
}

// differing returns the changes that differ from the object.
func differing(have map[string]string, changes map[string]*string) map[string]*string {
	for key, value := range changes {
		if is, ok := have[key]; ok == (value != nil) && (value == nil || *value == is) {
			delete(changes, key)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return changes
}

// IsReserved reports whether a condition of pods belongs to the kubelet, the scheduler or a workload. A marker does not
// write it.
func IsReserved(condition string) bool {
	if slices.Contains(reserved(), condition) {
		return true
	}
	switch corev1.PodConditionType(condition) {
	case corev1.DisruptionTarget, corev1.PodReadyToStartContainers, corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	}
	return false
}

// reserved are the conditions that also the name of a probe cannot be.
func reserved() []string {
	return []string{
		string(corev1.PodScheduled), string(corev1.PodInitialized), string(corev1.PodReady), string(corev1.ContainersReady),
		string(kruise.KruisePodReadyConditionType), string(kruise.InPlaceUpdateReady),
	}
}

// Write returns the patch of the pod; nil where nothing changes. It goes to the status subresource, through which API
// servers also accept labels and annotations, and tests the UID of the pod.
func (m Marking) Write() *write.Write {
	if m.pod == nil || len(m.Conditions) == 0 && len(m.Labels) == 0 && len(m.Annotations) == 0 {
		return nil
	}
	return &write.Write{
		Verb:        write.Patch,
		Object:      m.pod,
		Subresource: write.Status,
		Type:        types.StrategicMergePatchType,
		Body:        markingBody(m),
	}
}

// markingBody is the body of the patch of a marking.
type markingBody Marking

// Data returns the bytes of a strategic merge patch.
func (m markingBody) Data() ([]byte, error) {
	metadata := map[string]any{"uid": m.pod.UID}
	if len(m.Labels) > 0 {
		metadata["labels"] = maps.Clone(m.Labels)
	}
	if len(m.Annotations) > 0 {
		metadata["annotations"] = maps.Clone(m.Annotations)
	}
	patch := map[string]any{"metadata": metadata}
	if len(m.Conditions) > 0 {
		list := make([]map[string]any, 0, len(m.Conditions))
		for _, c := range m.Conditions {
			list = append(list, map[string]any{
				"type": c.Type, "status": c.Status, "message": c.Message, "reason": nil,
				"lastProbeTime": timeOrNil(c.LastProbeTime), "lastTransitionTime": timeOrNil(c.LastTransitionTime),
			})
		}
		patch["status"] = map[string]any{"conditions": list}
	}
	return json.Marshal(patch)
}

func timeOrNil(t metav1.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

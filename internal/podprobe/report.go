package podprobe

import (
	"encoding/json"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/write"
)

// Key is a probe of a pod.
type Key struct {
	// UID of the pod.
	UID string
	// Name of the probe in the NodePodProbe.
	Name string
}

// Reporting is what the status of a NodePodProbe follows from.
type Reporting struct {
	Spec   *v1alpha1.NodePodProbeSpec
	Status *v1alpha1.NodePodProbeStatus
	// Findings by probe. A probe without one keeps what the status has.
	Findings map[Key]Memory
}

// Flip is a probe whose state has changed.
type Flip struct {
	Pod   *v1alpha1.PodProbe
	State v1alpha1.ContainerProbeState
}

// States returns the states of a status by probe. Of a probe that stands twice, the first counts.
func States(status *v1alpha1.NodePodProbeStatus) map[Key]*v1alpha1.ContainerProbeState {
	all := map[Key]*v1alpha1.ContainerProbeState{}
	for i := range status.PodProbeStatuses {
		s := &status.PodProbeStatuses[i]
		for j := range s.ProbeStates {
			if key := (Key{s.UID, s.ProbeStates[j].Name}); all[key] == nil {
				all[key] = &s.ProbeStates[j]
			}
		}
	}
	return all
}

// Report returns the status of a NodePodProbe: the states of all probes of its spec that have one, and no others, in
// the order of the spec. Flips are the probes whose state has changed.
func Report(r Reporting) (status v1alpha1.NodePodProbeStatus, flips []Flip) {
	had, most := States(r.Status), messageBytes(r.Spec)
	seen := map[Key]bool{}
	for i := range r.Spec.PodProbes {
		p := &r.Spec.PodProbes[i]
		s := v1alpha1.PodProbeStatus{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
		for j := range p.Probes {
			key := Key{p.UID, p.Probes[j].Name}
			state, flipped, ok := stateOf(key.Name, had[key], r.Findings[key], most)
			if !ok || seen[key] {
				continue
			}
			seen[key] = true
			s.ProbeStates = append(s.ProbeStates, state)
			if flipped {
				flips = append(flips, Flip{Pod: p, State: state})
			}
		}
		if len(s.ProbeStates) > 0 {
			status.PodProbeStatuses = append(status.PodProbeStatuses, s)
		}
	}
	return status, flips
}

// stateOf returns the state of a probe, and whether it differs from the one that the status has.
func stateOf(
	name string, had *v1alpha1.ContainerProbeState, f Memory, most int,
) (state v1alpha1.ContainerProbeState, flipped, ok bool) {
	if f.State == "" {
		if had == nil {
			return state, false, false
		}
		return *had, false, true
	}
	state = v1alpha1.ContainerProbeState{
		Name:               name,
		State:              f.State,
		Message:            Cut(f.Message, most),
		LastProbeTime:      atSecond(f.At),
		LastTransitionTime: atSecond(f.At),
	}
	if had == nil || had.State != f.State {
		return state, true, true
	}
	if !had.LastTransitionTime.IsZero() {
		state.LastTransitionTime = had.LastTransitionTime
	}
	if state.Message == had.Message && had.LastProbeTime.After(state.LastProbeTime.Time) {
		state.LastProbeTime = had.LastProbeTime
	}
	return state, false, true
}

// atSecond is a time as the API server stores it.
func atSecond(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// messageBytes returns how long each message of a node may be, for the API server to store all. A byte may take six as
// JSON.
func messageBytes(spec *v1alpha1.NodePodProbeSpec) int {
	n := 0
	for i := range spec.PodProbes {
		n += len(spec.PodProbes[i].Probes)
	}
	return min(MaxMessage, MaxContent/6/max(n, 1))
}

// encodedLen is how many bytes a text takes in the JSON of an object, with its quotes.
func encodedLen(text string) int {
	data, _ := json.Marshal(text) //nolint:errchkjson // any text can be encoded
	return len(data)
}

// Urgency is how soon a status is to be written.
type Urgency int

const (
	// Unchanged needs no write.
	Unchanged Urgency = iota
	// Aged is a status in which a result was not reported again for long.
	Aged
	// Reworded is one in which messages differ.
	Reworded
	// Flipped is one in which states differ, or probes.
	Flipped
)

// Compare returns how soon a status is to be written in place of another.
func Compare(was, is *v1alpha1.NodePodProbeStatus) Urgency {
	if len(was.PodProbeStatuses) != len(is.PodProbeStatuses) {
		return Flipped
	}
	most := Unchanged
	for i := range was.PodProbeStatuses {
		a, b := &was.PodProbeStatuses[i], &is.PodProbeStatuses[i]
		if a.UID != b.UID || a.Name != b.Name || a.Namespace != b.Namespace || len(a.ProbeStates) != len(b.ProbeStates) {
			return Flipped
		}
		for j := range a.ProbeStates {
			most = max(most, compare(&a.ProbeStates[j], &b.ProbeStates[j]))
		}
	}
	return most
}

func compare(a, b *v1alpha1.ContainerProbeState) Urgency {
	switch {
	case a.Name != b.Name || a.State != b.State:
		return Flipped
	case a.Message != b.Message:
		return Reworded
	case b.LastProbeTime.Sub(a.LastProbeTime.Time) >= RefreshAfter:
		return Aged
	}
	return Unchanged
}

// StatusWrite returns the patch that makes the status of a NodePodProbe another one; nil where both are the same. The
// patch tests the version that was observed.
func StatusWrite(n *v1alpha1.NodePodProbe, status v1alpha1.NodePodProbeStatus) *write.Write {
	if apiequality.Semantic.DeepEqual(n.Status, status) {
		return nil
	}
	return &write.Write{
		Verb: write.Patch, Object: n, Subresource: write.Status, Type: types.MergePatchType, Body: statusBody{n, status},
	}
}

// statusBody is a merge patch with a whole status.
type statusBody struct {
	was *v1alpha1.NodePodProbe
	is  v1alpha1.NodePodProbeStatus
}

// Data returns the bytes of the patch.
func (s statusBody) Data() ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.was.UID, "resourceVersion": s.was.ResourceVersion},
		"status":   map[string]any{"podProbeStatuses": s.is.PodProbeStatuses},
	})
}

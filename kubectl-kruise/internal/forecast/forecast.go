package forecast

import (
	"fmt"
	"strconv"
	"time"

	"github.com/kruisekit/kruisekit/note"
)

// Fate is what becomes of a pod.
type Fate string

// The fates of pods.
const (
	// Unchanged is a pod that has the wanted revision already.
	Unchanged Fate = "Unchanged"
	// Kept is a pod that stays at an older revision, as the workload asks for: by its partition, its pause, its selector
	// or its strategy.
	Kept Fate = "Kept"
	// InPlace is a pod that is updated in place. Its containers restart, or none where the change needs no restart.
	InPlace Fate = "InPlace"
	// Recreated is a pod that is deleted for the update, and replaced.
	Recreated Fate = "Recreated"
	// Deleted is a pod that is deleted for another reason than the update: the workload scales in, the user has chosen the
	// pod, or the pod has finished.
	Deleted Fate = "Deleted"
	// Created is a new pod.
	Created Fate = "Created"
	// Blocked is a pod whose update or deletion does not happen, or does not end, until a user or another controller
	// changes an object.
	Blocked Fate = "Blocked"
)

// Severity orders forecasts by what they do to pods.
type Severity string

// The severities, from the least to the most severe.
const (
	// Harmless restarts no container and removes no pod.
	Harmless Severity = "Harmless"
	// Restarts has containers that restart in their pods.
	Restarts Severity = "Restarts"
	// Recreates has pods that are deleted.
	Recreates Severity = "Recreates"
	// Stuck has pods whose update does not end.
	Stuck Severity = "Stuck"
)

// Severities lists all severities, the least severe first.
func Severities() []Severity { return []Severity{Harmless, Restarts, Recreates, Stuck} }

// Forecast is what a change does.
type Forecast struct {
	// Kind, Namespace and Name are those of the workload.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// From and To are the current revision before the change, and the update revision after it. They are equal where the
	// change makes no new revision.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Severity is that of the most severe fate.
	Severity Severity `json:"severity"`
	// Bounds are those of the workload after the change.
	Bounds Bounds `json:"bounds"`
	// Pods are those of the workload by name, first those that exist. Their names have the namespace where the workload
	// has none.
	Pods []Pod `json:"pods"`
	// Subsets are those of a UnitedDeployment by name.
	Subsets []Subset `json:"subsets,omitempty"`
	// Batches are the updates that begin at the same time, in order.
	Batches []Batch `json:"batches"`
	// Timeline are the counts of pods whenever they change.
	Timeline []Moment `json:"timeline"`
	// Duration is from the change until the last pod is updated and available, by Pace. Where pods are deleted alone, it
	// is until they are gone.
	Duration Seconds `json:"duration"`
	// Pace is how fast pods start, restart and end.
	Pace Pace `json:"pace"`
	// Hold is the hold of a Deployment; nil for none.
	Hold *Hold `json:"hold,omitempty"`
	// BuiltIn is why the built-in controller of a Deployment recreates its pods; empty where the controller does not.
	BuiltIn string `json:"builtIn,omitempty"`
	// Incomplete reports that the workload stands still before all pods are as it asks for.
	Incomplete bool `json:"incomplete"`
	// Notes are those of the last pass of the reconciler: why the workload is left as it is.
	Notes []Note `json:"notes,omitempty"`
}

// Hold is the time in which a Deployment is paused for updates in place.
type Hold struct {
	// Ends is how long after the change the hold ends; nil where the hold lasts.
	Ends *Seconds `json:"ends,omitempty"`
}

// Note is a note.Note, with names for JSON.
type Note struct {
	Level  note.Level `json:"level,omitempty"`
	Code   string     `json:"code"`
	Object string     `json:"object,omitempty"`
	Text   string     `json:"text"`
}

// Bounds are what a rollout keeps to.
type Bounds struct {
	// Replicas that the workload asks for.
	Replicas int32 `json:"replicas"`
	// MaxUnavailable and MaxSurge are resolved.
	MaxUnavailable int32 `json:"maxUnavailable"`
	MaxSurge       int32 `json:"maxSurge,omitempty"`
	// Partition is how many pods stay at the current revision.
	Partition int32 `json:"partition,omitempty"`
	// MinAvailable is how many pods the rollout leaves available. Fewer are available where fewer are at its begin.
	MinAvailable int32 `json:"minAvailable"`
}

// Subset is how many pods a subset of a UnitedDeployment is to have.
type Subset struct {
	Name   string `json:"name"`
	Before int32  `json:"before"`
	After  int32  `json:"after"`
	// Partition is how many of its pods stay at older revisions.
	Partition int32 `json:"partition,omitempty"`
}

// Pod is the fate of one pod.
type Pod struct {
	Name string `json:"name"`
	Node string `json:"node,omitempty"`
	Fate Fate   `json:"fate"`
	// From and To are the revisions of the pod before and after.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Containers that restart in place.
	Containers []string `json:"containers,omitempty"`
	// Images are the new images of containers by their names.
	Images map[string]string `json:"images,omitempty"`
	// Paths are the fields that no running pod can change, for which the pod is recreated.
	Paths []string `json:"paths,omitempty"`
	// Reason and Text explain the fate where it needs one. Reason is the code of a note.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`
	// Hooks are the lifecycle hooks that the pod waits for.
	Hooks []string `json:"hooks,omitempty"`
	// Batch is the number of the batch in which the update of the pod begins, from 1 on; 0 for none.
	Batch int `json:"batch,omitempty"`
}

// Batch is a number of pods whose updates begin at the same time.
type Batch struct {
	// At is how long after the change the batch begins.
	At   Seconds  `json:"at"`
	Pods []string `json:"pods"`
}

// Moment is what is counted at one time.
type Moment struct {
	// At is how long after the change.
	At Seconds `json:"at"`
	// Pods are those that are not terminating.
	Pods      int32 `json:"pods"`
	Available int32 `json:"available"`
	// Updated are those of the wanted revision.
	Updated int32 `json:"updated"`
	// Terminating pods have not ended yet.
	Terminating int32 `json:"terminating,omitempty"`
}

// counts are those that a reader looks at: without the time, and without pods that end.
func (m Moment) counts() Moment {
	m.At, m.Terminating = 0, 0
	return m
}

// Seconds is a duration that is encoded as a number of seconds.
type Seconds time.Duration

// String returns the duration as Go does.
func (s Seconds) String() string { return time.Duration(s).String() }

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(time.Duration(s)/time.Second), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return fmt.Errorf("parse seconds: %w", err)
	}
	*s = Seconds(time.Duration(n) * time.Second)
	return nil
}

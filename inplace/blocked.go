package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/note"
)

// Block is one reason why a change cannot be made in a running pod.
type Block struct {
	// Path of the field in the template, with the names of containers and other named things in brackets, as in
	// spec.containers[app].env[LEVEL].value.
	Path string
	// Why it cannot change.
	Why string
}

// BlockedError reports that a change cannot be made in a running pod: the pod must be recreated.
type BlockedError struct {
	// Blocks are all the reasons, by path.
	Blocks []Block
}

// shown is how many reasons a message lists.
const shown = 5

// Error lists the first few reasons.
func (e *BlockedError) Error() string {
	var all []string
	for _, b := range e.Blocks[:min(len(e.Blocks), shown)] {
		all = append(all, b.Path+": "+b.Why)
	}
	if more := len(e.Blocks) - shown; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return "cannot be changed in place: " + strings.Join(all, "; ")
}

// whyFixed is the reason for a field that is none of those that may change. parts are the path from the
// container on, or from the template on.
func whyFixed(parts []string) string {
	const other = "the API server lets it not change in a running pod"
	if len(parts) == 0 {
		return other
	}
	switch first, _, _ := strings.Cut(parts[0], "["); first {
	case "volumes":
		return "a running pod keeps its volumes"
	case "nodeName", "nodeSelector", "affinity", "topologySpreadConstraints", "schedulerName", "tolerations":
		return "a running pod stays where it is scheduled"
	case "env", "envFrom":
		return "a container keeps its environment, but for values fed from labels and annotations"
	case "command", "args", "workingDir":
		return "a container keeps its command"
	case "volumeMounts", "volumeDevices":
		return "a running pod keeps its mounts"
	case "livenessProbe", "readinessProbe", "startupProbe":
		return "a running pod keeps its probes"
	case "resources":
		if last := parts[len(parts)-1]; last == "cpu" || last == "memory" {
			return "cpu and memory are not changed in place here"
		}
		return "resources other than cpu and memory stay as they are"
	}
	return other
}

// fixed adds every field in which two values differ, with why it cannot change.
func (d *differ) fixed(path string, from, to any) {
	for _, parts := range differing(nil, plain(from), plain(to)) {
		d.block(strings.Join(append([]string{path}, parts...), "."), whyFixed(parts))
	}
}

// plain is a value as JSON has it.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil
	}
	return out
}

// differing returns the paths of the fields in which two values differ. The items of a list are compared by their
// names; a list whose items have none, or another order, differs as a whole.
func differing(at []string, from, to any) [][]string {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	fields, others := byKey(from), byKey(to)
	if fields == nil || others == nil {
		return [][]string{at}
	}
	keys := maps.Clone(fields)
	maps.Copy(keys, others)
	var paths [][]string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := append(slices.Clip(at), key)
		if last := len(at) - 1; strings.HasPrefix(key, "[") && last >= 0 {
			inner = append(slices.Clone(at[:last]), at[last]+key)
		}
		paths = append(paths, differing(inner, fields[key], others[key])...)
	}
	if len(paths) == 0 {
		return [][]string{at}
	}
	return paths
}

// byKey returns the fields of an object, or the items of a list by their names in brackets; nil for neither.
func byKey(value any) map[string]any {
	if object, is := value.(map[string]any); is {
		return object
	}
	list, _ := value.([]any)
	items := make(map[string]any, len(list))
	for _, item := range list {
		object, _ := item.(map[string]any)
		if name, is := object["name"].(string); is {
			items["["+name+"]"] = item
		}
	}
	if len(list) == 0 || len(items) != len(list) {
		return nil
	}
	return items
}

// The codes of notes.
const (
	// NoteNotStarted waits for the kubelet's first report of a new pod, after which Next opens the readiness gate.
	NoteNotStarted = "InPlaceNotStarted"
	// NoteGrace waits for the end of the grace period.
	NoteGrace = "InPlaceGracePeriod"
	// NoteBatch waits for the containers of a batch to be ready before the next.
	NoteBatch = "InPlaceBatch"
	// NoteImage waits for a container to run its new image.
	NoteImage = "InPlaceImage"
	// NoteEnv waits for a container to run with its new environment.
	NoteEnv = "InPlaceEnv"
	// NoteDaemon waits for what only a daemon on the node can report.
	NoteDaemon = "InPlaceNoDaemon"
	// NoteResize waits for a container to get its new resources.
	NoteResize = "InPlaceResize"
	// NoteDeferred waits for room on the node.
	NoteDeferred = "InPlaceResizeDeferred"
	// NoteInfeasible is a pod whose node can never satisfy the requested resources.
	NoteInfeasible = "InPlaceResizeInfeasible"
	// NoteFinished is a pod that has finished, in which nothing starts.
	NoteFinished = "InPlacePodFinished"
	// NoteUnreadable is an annotation that cannot be parsed.
	NoteUnreadable = "InPlaceUnreadable"
	// NoteRelabel waits for the pod to be ready before the revision label changes, see RelabelLast.
	NoteRelabel = "InPlaceRelabel"
	// NoteNoGate is a pod whose containers restart in traffic, since it lacks the readiness gate.
	NoteNoGate = "InPlaceNoReadinessGate"
)

func newNote(pod *corev1.Pod, code, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: pod.Name, Text: text}
}

func levelOf(code string) note.Level {
	switch code {
	case NoteDaemon, NoteDeferred, NoteInfeasible, NoteUnreadable:
		return note.Blocked
	case NoteFinished, NoteNoGate:
		return note.Info
	}
	return note.Waiting
}

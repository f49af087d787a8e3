package inplace

import (
	"fmt"
	"strings"
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

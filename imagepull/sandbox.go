package imagepull

import (
	"fmt"
	"slices"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Limits of sandboxConfig, whose labels and annotations are copied to each node. Jobs of one namespace leave a
// sixteenth of the second to others.
const (
	// MaxSandboxBytes is how long the sandboxConfig of a job may be, as JSON.
	MaxSandboxBytes = 16 << 10
	// MaxNodeSandboxBytes is how long the sandboxConfigs of all images of a NodeImage may be together.
	MaxNodeSandboxBytes = 512 << 10
)

// SandboxBytes returns how long a sandboxConfig is as JSON: what it takes in the store of the API server.
func SandboxBytes(c *v1beta1.SandboxConfig) int {
	if c == nil {
		return 0
	}
	n := 0
	for _, all := range []map[string]string{c.Labels, c.Annotations} {
		for key, value := range all {
			n += quoted(key) + quoted(value) + len(":,")
		}
	}
	return n
}

// quoted returns how long a text is as JSON. API servers escape the bytes that HTML or scripts give a meaning, too.
func quoted(s string) int {
	n := len(s) + len(`""`)
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"', b == '\\':
			n++
		case b < ' ', b == '<', b == '>', b == '&':
			n += len(`\u0000`) - 1
		case b == 0xe2: // the first of three bytes of U+2028
			n += len(`\u2028`) - 3
		}
	}
	return n
}

// boundedSandbox returns a copy of a sandboxConfig; nil for one that is too long.
func boundedSandbox(c *v1beta1.SandboxConfig) *v1beta1.SandboxConfig {
	if SandboxBytes(c) > MaxSandboxBytes {
		return nil
	}
	return c.DeepCopy()
}

// takesSandbox reports whether the job has a sandboxConfig for which a NodeImage has room, in the place of the one that
// its image has.
func (r Request) takesSandbox(n *v1beta1.NodeImage, ref Reference) bool {
	const share = MaxNodeSandboxBytes - MaxNodeSandboxBytes/16
	own := SandboxBytes(r.Job.Spec.SandboxConfig)
	if r.Job.Spec.SandboxConfig == nil || own > MaxSandboxBytes {
		return false
	}
	all, mine := own, own
	for name, image := range n.Spec.Images {
		if name == ref.Name || image.SandboxConfig == nil {
			continue
		}
		size := SandboxBytes(image.SandboxConfig)
		all += size
		if slices.ContainsFunc(image.Tags, r.hasTag) {
			mine += size
		}
	}
	return all <= share || all <= MaxNodeSandboxBytes && mine <= share
}

// noteSandbox notes that nodes pull without the sandboxConfig of the job.
func (r Request) noteSandbox(plan *JobPlan, ref Reference, nodes []*v1beta1.NodeImage) {
	switch size := SandboxBytes(r.Job.Spec.SandboxConfig); {
	case size == 0:
		return
	case size > MaxSandboxBytes:
		plan.note(NoteSandbox, r.Job.Name,
			fmt.Sprintf("spec.sandboxConfig has %d bytes, of at most %d: nodes pull without it", size, MaxSandboxBytes))
		return
	}
	without := 0
	for _, n := range nodes {
		if slices.Contains(plan.Update, n.Name) && !r.takesSandbox(n, ref) {
			without++
		}
	}
	if without > 0 {
		plan.note(NoteSandbox, r.Job.Name,
			fmt.Sprintf("%d NodeImages have no room for spec.sandboxConfig: these nodes pull without it", without))
	}
}

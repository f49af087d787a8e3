package imagepull

import (
	"encoding/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Limits of a NodeImage, which all namespaces share.
const (
	// MaxImages is how many images a NodeImage lists at most.
	MaxImages = 256
	// MaxNodeBytes is how long a NodeImage is at which it takes no more, as JSON. A tag counts with tagBytes for its
	// status. The last addition leaves it short enough for the store of the API server.
	MaxNodeBytes = 1 << 20
	// MaxSandboxBytes is how long the sandboxConfig of a job may be, as JSON.
	MaxSandboxBytes = 16 << 10

	tagBytes = 1 << 10
	// maxBatchSecrets is how many references to copies an image has before those to deleted copies are dropped.
	maxBatchSecrets = 64
)

// hasRoom reports whether a NodeImage takes another tag.
func hasRoom(n *v1beta1.NodeImage, ref Reference) bool {
	if _, listed := n.Spec.Images[ref.Name]; !listed && len(n.Spec.Images) >= MaxImages {
		return false
	}
	data, err := json.Marshal(n.Spec)
	bytes := len(data)
	for _, image := range n.Spec.Images {
		bytes += len(image.Tags) * tagBytes
	}
	return err == nil && bytes < MaxNodeBytes
}

// SandboxBytes returns how long the labels and annotations of a sandboxConfig are as JSON.
func SandboxBytes(c *v1beta1.SandboxConfig) int {
	n := 0
	if c == nil {
		return n
	}
	for _, all := range []map[string]string{c.Labels, c.Annotations} {
		if len(all) > 0 {
			data, _ := json.Marshal(all) //nolint:errchkjson // texts have no error
			n += len(data) - 1           // without one of the braces: each entry has a comma
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

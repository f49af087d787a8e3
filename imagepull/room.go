package imagepull

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Limits of a NodeImage, which all namespaces share. Jobs of one namespace leave a sixteenth of each to others.
const (
	// MaxImages is how many images a NodeImage lists at most.
	MaxImages = 256
	// MaxNodeBytes is how long a NodeImage is at which it takes no more, as JSON, by an estimate. The last addition leaves
	// it short enough for the store of the API server.
	MaxNodeBytes = 1 << 20
	// MaxSandboxBytes is how long the sandboxConfig of a job may be, as JSON.
	MaxSandboxBytes = 16 << 10
)

// What the parts of a NodeImage take beside their texts, as JSON. A tag counts with its status.
const (
	imageBytes  = 64
	tagBytes    = 1 << 10
	ownerBytes  = 80
	secretBytes = 48
)

// hasRoom reports whether a NodeImage takes more for a job.
func (r Request) hasRoom(n *v1beta1.NodeImage, ref Reference) bool {
	var images, bytes, myImages, myBytes int
	for name, image := range n.Spec.Images {
		size := len(name) + bytesOf(image)
		images++
		bytes += size
		if slices.ContainsFunc(image.Tags, r.hasTag) {
			myImages++
			myBytes += size
		}
	}
	_, listed := n.Spec.Images[ref.Name]
	return (listed || within(MaxImages, images, myImages)) && within(MaxNodeBytes, bytes, myBytes)
}

// within reports whether all is below a limit, and mine below the share of a namespace where that is close.
func within(limit, all, mine int) bool {
	share := limit - limit/16
	return all < share || all < limit && mine < share
}

func bytesOf(image v1beta1.ImageSpec) int {
	n := imageBytes
	for _, s := range image.PullSecrets {
		n += len(s.Namespace) + len(s.Name) + secretBytes
	}
	if c := image.SandboxConfig; c != nil {
		const escaped = 6 // bytes of what JSON escapes
		for _, all := range []map[string]string{c.Labels, c.Annotations} {
			for key, value := range all {
				n += escaped * (len(key) + len(value) + 1)
			}
		}
	}
	for i := range image.Tags {
		n += len(image.Tags[i].Tag) + tagBytes
		for _, o := range image.Tags[i].OwnerReferences {
			n += len(o.Namespace) + len(o.Name) + len(o.UID) + ownerBytes
		}
	}
	return n
}

// hasTag reports whether a job of the namespace owns a tag.
func (r Request) hasTag(t v1beta1.ImageTagSpec) bool {
	return slices.ContainsFunc(t.OwnerReferences, func(o corev1.ObjectReference) bool {
		return isJob(o) && o.Namespace == r.Job.Namespace
	})
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

// sandboxTooLong is the text of a note about the sandboxConfig of a job or of a list; empty where it is short enough.
func sandboxTooLong(c *v1beta1.SandboxConfig) string {
	if size := SandboxBytes(c); size > MaxSandboxBytes {
		return fmt.Sprintf("spec.sandboxConfig has %d bytes, of at most %d: nodes pull without it", size, MaxSandboxBytes)
	}
	return ""
}

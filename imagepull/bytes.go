package imagepull

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What the parts of a NodeImage take beside their texts, as JSON. A tag counts with its status.
const (
	imageBytes  = 64
	tagBytes    = 1 << 10
	ownerBytes  = 80
	secretBytes = 48
)

// takesBytes reports whether a NodeImage stays short enough with the job and with secrets that its image lacks. Its own
// sandboxConfig is left out where it does not fit.
func (r Request) takesBytes(n *v1beta1.NodeImage, ref Reference, lacks []v1beta1.ReferenceObject) bool {
	const share = MaxNodeBytes - MaxNodeBytes/16
	owner := r.owner()
	own := len(ref.Name) + imageBytes + len(ref.Tag) + tagBytes + len(owner.Namespace) + len(owner.Name) + len(owner.UID) +
		ownerBytes + bytesOf(lacks)
	all, mine := own, own
	for name, image := range n.Spec.Images {
		size := len(name) + imageBytes + bytesOf(image.PullSecrets) + SandboxBytes(image.SandboxConfig)
		ours := false
		for i := range image.Tags {
			size += len(image.Tags[i].Tag) + tagBytes
			for _, o := range image.Tags[i].OwnerReferences {
				size += len(o.Namespace) + len(o.Name) + len(o.UID) + ownerBytes
				ours = ours || r.ofNamespace(o)
			}
		}
		all += size
		if ours {
			mine += size
		}
	}
	return all <= share || all <= MaxNodeBytes && mine <= share
}

// takesSecrets reports whether a NodeImage lacks secrets of a job that it lists, and has room for them.
func (r Request) takesSecrets(n *v1beta1.NodeImage, ref Reference, lacks []v1beta1.ReferenceObject) bool {
	return len(lacks) > 0 && r.takesBytes(n, ref, lacks)
}

func bytesOf(secrets []v1beta1.ReferenceObject) int {
	n := 0
	for _, s := range secrets {
		n += len(s.Namespace) + len(s.Name) + secretBytes
	}
	return n
}

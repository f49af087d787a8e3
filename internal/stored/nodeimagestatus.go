package stored

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/write"
)

// NodeImageStatus returns the patch of the status of a NodeImageStatus, which a daemon and a controller write. The
// patch is bound to the version that was observed, so that it does not overwrite what another writer has written since.
// It always has the counters: the schema requires one of them, and lists print all.
func NodeImageStatus(was *v1beta1.NodeImage, status *v1beta1.NodeImageStatus) (client.Patch, error) {
	is := *was
	is.Status = *status
	return AlwaysMergeStatus(was, &is, map[string]any{
		"desired": status.Desired, "succeeded": status.Succeeded, "failed": status.Failed,
		"pulling": status.Pulling, "waiting": status.Waiting,
	}, SameVersion)
}

// WriteNodeImageStatus returns the write of the patch of NodeImageStatus.
func WriteNodeImageStatus(kind Kind, was *v1beta1.NodeImage, status *v1beta1.NodeImageStatus) (*write.Write, error) {
	patch, err := NodeImageStatus(was, status)
	return sent(kind, was, patch, err)
}

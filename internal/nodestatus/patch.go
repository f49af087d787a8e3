// Package nodestatus writes the status of a NodeImage, which several do: the daemon of the node, and the controller
// that speaks for nodes that are silent.
package nodestatus

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
)

// Patch is what changes in the status, bound to the version that was observed, so that it does not overwrite what
// another writer has written since. The counters are always in it: the schema requires one of them, and lists print
// all.
func Patch(was *v1beta1.NodeImage, status *v1beta1.NodeImageStatus) (client.Patch, error) {
	is := *was
	is.Status = *status
	return statuspatch.Always(was, &is, map[string]any{
		"desired": status.Desired, "succeeded": status.Succeeded, "failed": status.Failed,
		"pulling": status.Pulling, "waiting": status.Waiting,
	}, statuspatch.SameVersion)
}

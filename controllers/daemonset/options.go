package daemonset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does with its default feature gates, but for the
// bounds: see LooseBudget.
type Options struct {
	// Live reads past the cache, to find out whether a write whose answer was lost has happened. SetupWithManager takes
	// the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// LooseBudget counts as the reference does: a pod that is not available takes nothing of maxUnavailable where it is
	// still to be updated, or where the partition or the selector of nodes keeps it. Two updates in a row can then take
	// every pod down.
	LooseBudget bool
	// BindDirectly sets the node of a new pod itself, instead of having the scheduler put the pod on the node.
	BindDirectly bool
	// PreDownload has nodes pull the images of an update ahead. It takes ImagePullJobs, and a daemon on the nodes.
	PreDownload bool
	// Installed is what in-place updates find in the cluster; nil for a daemon that restarts containers for their
	// environment, and no resize. Without the daemon, environment variables from labels and annotations stay as they are
	// when these change.
	Installed *inplace.Installation
	// SkipQuiet leaves out changes of pods in nothing that matters to their set, such as the status of one container. It
	// saves passes, not writes.
	SkipQuiet bool
	// Ask is called before updates of pods begin, in place or not, with all of those pods in the order of their updates.
	// Nil for the error lets all begin, a *workload.RefusedError the first ones. The rest is asked for again after a
	// second. Nil for no call.
	Ask func(ctx context.Context, pods []*corev1.Pod) error
	// Explain is called in each pass, after its writes, with why the plan is as it is and what pods wait for. The pass
	// waits for the return. Nil for no call.
	Explain func(ctx context.Context, set types.NamespacedName, notes []note.Note)
}

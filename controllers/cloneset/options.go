package cloneset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does with its default feature gates.
type Options struct {
	// Live reads past the cache, to find out whether a write whose answer was lost has happened. SetupWithManager takes
	// the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// NewID returns the instance id of a new pod, with which its name ends; nil for five random characters.
	NewID func() string

	// ShortHash writes only the hash of a revision into the label controller-revision-hash.
	ShortHash bool
	// PartitionRollback moves updated pods back when the partition is raised.
	PartitionRollback bool
	// PreparingUpdateIsUpdated counts pods that a hook holds before their update as updated while scaling.
	PreparingUpdateIsUpdated bool
	// ExcludePreparingDelete does not count pods that a hook holds before their deletion, for all CloneSets.
	ExcludePreparingDelete bool
	// RecreateOnClaimChange recreates pods when the volume claim templates of two revisions differ.
	RecreateOnClaimChange bool
	// Installed is what in-place updates find in the cluster; nil for a daemon that restarts containers for their
	// environment, and no resize. Without the daemon, environment variables from labels and annotations stay as they are
	// when these change.
	Installed *inplace.Installation
	// PreDownload has nodes pull the images of an in-place update ahead, with ImagePullJobs, where these are installed.
	PreDownload bool
	// SkipQuiet leaves out changes of pods in nothing that matters to their set, such as the status of one container. It
	// saves passes, not writes.
	SkipQuiet bool
	// Ask is called before updates begin, with their pods in order, and may write, as the guard of budgets does.
	// A *workload.RefusedError admits the first ones; the others are asked for again after a second. Nil for no call.
	Ask func(ctx context.Context, pods []*corev1.Pod) error
	// Explain is called in each pass, after its writes, with why the plan is as it is and what pods wait for: for logs,
	// traces and screens. The context is that of the pass. A rollout that stands still has the same notes in its next
	// pass. The pass waits for the return. Nil for no call.
	Explain func(ctx context.Context, set types.NamespacedName, notes []note.Note)
}

// policy is what CloneSets change in place and how. That any change takes a pod out of traffic is what CloneSet
// promises.
func (o Options) policy() inplace.Policy {
	p := workloads.Policy(o.Installed)
	p.Unready = inplace.UnreadyAlways
	return p
}

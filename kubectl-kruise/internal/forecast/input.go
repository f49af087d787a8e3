package forecast

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/inplace"
)

// Input is a snapshot of a cluster, and a change.
type Input struct {
	// Now is when the change is applied.
	Now time.Time
	// Live is the workload as it is, with its status, and Wanted as it will be. Both are of the version that reconcilers
	// read, with their defaults. Metadata and status are those of Live, but for labels and annotations.
	Live, Wanted client.Object
	// Objects are the others that the reconciler reads: pods, ControllerRevisions and claims of the workload, nodes, and
	// PodUnavailableBudgets. Others are ignored.
	Objects []client.Object
	Options Options
}

// Options of a forecast. The zero value forecasts what a default installation does.
type Options struct {
	// Installed is what in-place updates find in the cluster. Nil is for a daemon that restarts containers for their
	// environment, and no resize, as the default of the reconcilers.
	Installed *inplace.Installation
	// HoldHooks ends the forecast at lifecycle hooks, as if their owners never answered.
	HoldHooks bool
	// Pace is how fast pods start, restart and end. Fields that are zero are taken from the history of the pods.
	Pace Pace
}

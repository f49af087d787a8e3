package workloadspread

import (
	ctrl "sigs.k8s.io/controller-runtime"

	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
)

// Desk gives new pods their subsets, and records what it gives in the statuses of the WorkloadSpreads. The webhook of
// new pods and that of disruptions ask the Desk: it is the option Spreads of webhooks/pod and of webhooks/disruption.
type Desk = spreads.Desk

// DeskOptions are the options of a Desk. The zero value is the default of the reference.
type DeskOptions = spreads.Options

// NewDesk returns a Desk that follows the WorkloadSpreads in the cache of a manager, on all replicas. It must be called
// before the manager starts, once for all that ask.
func NewDesk(mgr ctrl.Manager, o DeskOptions) (*Desk, error) { return spreads.FromManager(mgr, o) }

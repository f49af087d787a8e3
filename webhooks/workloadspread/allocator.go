package workloadspread

import (
	ctrl "sigs.k8s.io/controller-runtime"

	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
)

// Allocator gives new pods their subsets, and records what it gives in the statuses of the WorkloadSpreads. The webhook
// of new pods and that of disruptions ask the Allocator: it is the option Spreads of webhooks/pod and of
// webhooks/disruption.
type Allocator = spreads.Allocator

// AllocatorOptions are the options of an Allocator. The zero value is the default of the reference.
type AllocatorOptions = spreads.Options

// NewAllocator returns an Allocator that follows the WorkloadSpreads in the cache of a manager, on all replicas. It
// must be called before the manager starts, once for all that ask.
func NewAllocator(mgr ctrl.Manager, o AllocatorOptions) (*Allocator, error) {
	return spreads.FromManager(mgr, o)
}

package workloadspread

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
)

// AllocatorOptions are the options of an Allocator. The zero value is the default of the reference.
type AllocatorOptions struct {
	// Versioned are the kinds, in lower case, whose pods are counted by version. Nil for deployment and replicaset.
	Versioned []string
	// Namespace of the manager, whose ConfigMap kruise-configuration lists further kinds of targets. Default
	// kruise-system.
	Namespace string
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Allocator gives new pods their subsets, and records what it gives in the statuses of the WorkloadSpreads. The webhook
// of new pods and that of disruptions ask the Allocator: it is the option Spreads of webhooks/pod and of
// webhooks/disruption. All replicas of a manager have one.
type Allocator struct{ *allocator }

type allocator = spreads.Allocator

// NewAllocator returns an Allocator that follows the WorkloadSpreads in the cache of a manager, on all replicas. It
// must be called before the manager starts, once for all that ask.
func NewAllocator(mgr ctrl.Manager, o AllocatorOptions) (*Allocator, error) {
	records, err := spreads.FromManager(mgr, spreads.Options(o))
	if err != nil {
		return nil, err
	}
	return &Allocator{records}, nil
}

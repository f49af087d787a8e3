package workloadspread

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// FromManager returns an Allocator that follows the WorkloadSpreads in the cache of a manager, on all replicas. It must
// be called before the manager starts, once for all webhooks of the manager.
func FromManager(mgr ctrl.Manager, o Options) (*Allocator, error) {
	o = o.withDefaults()
	index, c, live := NewIndex(o.Now), mgr.GetClient(), mgr.GetAPIReader()
	f := watches.Follow(index.Index, Kind())
	d, err := New(Lookups{Spreads: index, Client: c, Filled: f.Wait, Targets: &Targets{
		Finder: &replicas.Finder{Cached: mgr.GetCache(), Live: live, Scales: c, Mapper: mgr.GetRESTMapper(), Now: o.Now},
		Live:   live,
		Kinds:  &Kinds{Live: live, Namespace: o.Namespace, Now: o.Now},
	}}, o)
	if err != nil {
		return nil, err
	}
	return d, f.AddTo(mgr)
}

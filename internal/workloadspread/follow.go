package workloadspread

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/following"
	"github.com/kruisekit/kruisekit/internal/replicas"
)

// FromManager returns an Allocator that follows the WorkloadSpreads in the cache of a manager, on all replicas. It must
// be called before the manager starts, once for all webhooks of the manager.
func FromManager(mgr ctrl.Manager, o Options) (*Allocator, error) {
	index := NewIndex()
	f := &following.Follower{Kind: Kind()}
	c := mgr.GetClient()
	finder := &replicas.Finder{
		Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Scales: c, Mapper: mgr.GetRESTMapper(), Now: o.Now,
	}
	kinds := &Kinds{Live: mgr.GetAPIReader(), Namespace: o.Namespace}
	d, err := New(Lookups{
		Spreads: index, Client: c, Live: mgr.GetAPIReader(), Filled: f.Wait,
		Targets: &Targets{Finder: finder, Live: mgr.GetAPIReader(), Kinds: kinds},
	}, o)
	if err != nil {
		return nil, err
	}
	finder.Now, kinds.Now = d.options.Now, d.options.Now
	f.Put = func(ctx context.Context, raw *unstructured.Unstructured) {
		if err := index.Put(raw); err != nil {
			log.FromContext(ctx).Error(err, "Failed to read a WorkloadSpread, which spreads no pod",
				"workloadSpread", client.ObjectKeyFromObject(raw))
			index.Delete(client.ObjectKeyFromObject(raw))
		}
		d.Seen(raw.GetUID(), client.ObjectKeyFromObject(raw))
	}
	f.Delete = func(raw *unstructured.Unstructured) {
		index.Delete(client.ObjectKeyFromObject(raw))
		d.Seen(raw.GetUID(), client.ObjectKeyFromObject(raw))
	}
	return d, f.AddTo(mgr)
}

package disruption

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/following"
)

// NewGuard returns a Guard that follows the budgets in the cache of a manager, on all replicas. It must be called
// before the manager starts, once: webhooks and reconcilers of one manager share one Guard, so that one write commits
// what they spend.
func NewGuard(mgr ctrl.Manager, o GuardOptions) (*Guard, error) {
	index, f := newBudgetIndex(), &following.Follower{Kind: budgetKind()}
	if o.Recorder == nil {
		o.Recorder = mgr.GetEventRecorderFor("podunavailablebudget-webhook")
	}
	g, err := newGuard(guardLookups{
		Budgets: index, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), ReplicaSets: mgr.GetCache(), Filled: f.Wait,
	}, o)
	if err != nil {
		return nil, err
	}
	f.Put = func(ctx context.Context, raw *unstructured.Unstructured) {
		name := client.ObjectKeyFromObject(raw)
		if err := index.Put(raw); err != nil {
			log.FromContext(ctx).Error(err, "Failed to read a budget, which guards no pod", "budget", name)
			index.Delete(name)
		}
		g.seen(raw.GetUID(), name)
	}
	f.Delete = func(raw *unstructured.Unstructured) {
		name := client.ObjectKeyFromObject(raw)
		index.Delete(name)
		g.seen(raw.GetUID(), name)
	}
	return g, f.AddTo(mgr)
}

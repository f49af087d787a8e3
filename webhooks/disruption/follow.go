package disruption

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/watches"
)

// NewGuard returns a Guard that follows the budgets in the cache of a manager, on all replicas. It must be called
// before the manager starts, once: webhooks and reconcilers of one manager share one Guard, so that one write commits
// what they spend.
func NewGuard(mgr ctrl.Manager, o GuardOptions) (*Guard, error) {
	o = o.withDefaults()
	index := newBudgetIndex(o.Now)
	f := watches.Follow(index, budgetKind())
	if o.Recorder == nil {
		o.Recorder = mgr.GetEventRecorderFor("podunavailablebudget-webhook")
	}
	g, err := newGuard(guardLookups{
		Budgets: index, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), ReplicaSets: mgr.GetCache(), Filled: f.Wait,
	}, o)
	if err != nil {
		return nil, err
	}
	return g, f.AddTo(mgr)
}

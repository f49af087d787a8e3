package process

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// guard decides by PodUnavailableBudgets; nil where no gate reviews disruptions.
func guard(mgr ctrl.Manager, o options.Options, r resizing, a audit) (*disruption.Guard, error) {
	if !o.Gates.On(gates.PodUnavailableBudgetDeleteGate) && !o.Gates.On(gates.PodUnavailableBudgetUpdateGate) {
		return nil, nil //nolint:nilnil // nothing asks
	}
	return disruption.NewGuard(mgr, disruption.GuardOptions{
		Policy: guardPolicy(o, r), Registerer: metrics.Registry, Audit: a.disruption,
	})
}

// guardPolicy is the policy of admission: that of all that decide by budgets, and the exempt users.
func guardPolicy(o options.Options, r resizing) pub.Policy {
	p := budgetPolicy(o.Gates, r)
	p.ExemptUsers = o.BudgetExemptUsers
	return p
}

// budgetPolicy is what the installation offers, for whatever decides by budgets.
func budgetPolicy(g gates.Gates, r resizing) pub.Policy {
	return pub.Policy{Installed: *installed(g, r), Resizes: g.On(gates.InPlacePodVerticalScaling)}
}

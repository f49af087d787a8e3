package disruption

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/budgets"
)

// Guard decides about disruptions by the budgets of the cluster. Besides this webhook, the webhook of new pods, that of
// budgets and the reconcilers of workloads ask the Guard: Guard.Ask is the option Ask of controllers/cloneset.
type Guard = budgets.Guard

// GuardOptions are the options of a Guard. The zero value is the default of the reference, which exempts no user:
// pub.SystemUsers, in the policy, are those whom budgets should not refuse. podscope.Options.ExemptUsers takes the same
// list.
type GuardOptions = budgets.Options

// Refusal is what the option Audit of a Guard receives.
type Refusal = budgets.Entry

// NewGuard returns a Guard that follows the budgets in the cache of a manager, on all replicas. It must be called
// before the manager starts, once for all that ask.
func NewGuard(mgr ctrl.Manager, o GuardOptions) (*Guard, error) { return budgets.FromManager(mgr, o) }

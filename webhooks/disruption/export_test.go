package disruption

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GuardLookups are what a Guard reads and writes.
type GuardLookups = guardLookups

// BudgetIndex has the budgets of the cluster.
type BudgetIndex = budgetIndex

// ManagerUser is the user of the reviews that reconcilers ask for.
const ManagerUser = managerUser

// NewGuardOf returns a Guard without a manager.
func NewGuardOf(l GuardLookups, o GuardOptions) (*Guard, error) { return newGuard(l, o) }

// NewBudgetIndex returns an empty index.
func NewBudgetIndex(now func() time.Time) *BudgetIndex { return newBudgetIndex(now) }

// BudgetKind is that of budgets.
func BudgetKind() schema.GroupVersionKind { return budgetKind() }

// Waiting counts the reviews that wait for the write of another batch.
func (g *Guard) Waiting() int { return g.reviews.Waiting() }

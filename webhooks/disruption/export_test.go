package disruption

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
func NewBudgetIndex() *BudgetIndex { return newBudgetIndex() }

// BudgetKind is that of budgets.
func BudgetKind() schema.GroupVersionKind { return budgetKind() }

// Seen frees what is kept of a budget.
func (g *Guard) Seen(uid types.UID, name types.NamespacedName) { g.seen(uid, name) }

// Waiting counts the reviews that wait for the write of another batch.
func (g *Guard) Waiting() int { return g.reviews.Waiting() }

// Kept counts the budgets that take memory.
func (g *Guard) Kept() int { return g.reviews.Kept() }

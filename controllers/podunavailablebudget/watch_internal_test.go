package podunavailablebudget

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/watches"
)

// pauses keeps the pauses of requests.
type pauses struct {
	watches.Queue

	all []time.Duration
}

func (p *pauses) AddAfter(_ ctrl.Request, pause time.Duration) { p.all = append(p.all, pause) }

// TestManyBudgets: the budgets of one namespace leave most of the time to those of others, however many guard a pod.
func TestManyBudgets(t *testing.T) {
	const pass = 30 * time.Millisecond // of a budget that guards 10,000 pods
	for budgets, want := range map[int]time.Duration{1: gather, 5: 2 * gather, 1001: 251 * gather} {
		var q pauses
		later(&q, make([]ctrl.Request, budgets))
		if len(q.all) != budgets || q.all[0] != want || time.Duration(budgets)*pass > want*3/4 {
			t.Errorf("%d of %d budgets wait %v, want %s", len(q.all), budgets, q.all[0], want)
		}
	}
}

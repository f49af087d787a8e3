package budgets

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/pub"
)

// newest returns the newest state that is known of a budget; false where the budget is gone. A state that the cache
// does not show for a minute is read live: versions go back where etcd is restored to an older version.
func (g *Guard) newest(ctx context.Context, batch []*question, b pub.Budget, l *line) (known, bool) {
	state, is := g.lookups.Budgets.find(nameOf(b))
	if !is || state.budget.UID != b.UID {
		return known{}, false
	}
	g.mu.Lock()
	last, at := l.last, l.at
	g.mu.Unlock()
	switch {
	case last.version == "" || !last.newer(state):
		return state, true
	case g.options.Now().Sub(at) < ledger.Patience:
		return last, true
	}
	fresh, err := g.read(ctx, batch, b)
	switch {
	case apierrors.IsNotFound(err), err == nil && fresh.budget.UID != b.UID:
		return known{}, false
	case err != nil:
		log.FromContext(ctx).Error(err, "Failed to read a budget that the cache lacks", "budget", nameOf(b))
		fresh = last
	}
	g.keep(l, fresh)
	return fresh, true
}

func (g *Guard) keep(l *line, state known) {
	now := g.options.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	l.last, l.at = state, now
}

// forget frees a line that nothing waits in and whose last state the cache shows. The caller holds the lock.
func (g *Guard) forget(b pub.Budget, l *line) {
	state, is := g.lookups.Budgets.find(nameOf(b))
	if l.last.version == "" || !is || state.budget.UID != b.UID || !l.last.newer(state) {
		delete(g.lines, b.UID)
	}
}

// Seen frees what is kept of budgets that the cache shows. The follower of budgets calls it for each change, also after
// a deletion.
func (g *Guard) Seen(uid types.UID, name types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lines[uid]; l != nil && !l.running {
		g.forget(pub.Budget{Namespace: name.Namespace, Name: name.Name, UID: uid}, l)
	}
}

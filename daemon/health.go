package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// runtimeCheck is the name of the check of the connections to the runtimes.
const runtimeCheck = "runtimeConnected"

var (
	errNotSynced    = errors.New("not synced yet")
	errNotConnected = errors.New("not connected")
)

// Checks returns the health checks of a daemon by name. nodeImageInformerSynced and its siblings report whether the
// cache of one kind has synced. A kind that is not installed fails in the first 15 seconds, where Options.LeftOut is
// set. runtimeConnected reports whether the runtimes of the node are connected. The checks make no calls. A restart of
// the daemon repairs none of them. Use them for a readiness probe, not for a liveness probe. Call Checks before the
// manager starts.
func Checks(ctx context.Context, mgr ctrl.Manager, n Node, o Options) (map[string]healthz.Checker, error) {
	return checks(ctx, mgr, target{n, o, list(n, o)})
}

func checks(ctx context.Context, mgr ctrl.Manager, t target) (map[string]healthz.Checker, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	all := map[string]healthz.Checker{runtimeCheck: connected(t.Runtimes)}
	err := t.each(mgr, func(p part, why absence) error {
		switch {
		case why.reason == "":
			all[p.check] = synced(ctx, mgr, p)
			if _, err := mgr.GetCache().GetInformer(ctx, p.object, cache.BlockUntilSynced(false)); err != nil {
				return fmt.Errorf("check part %s: %w", p.name, err)
			}
		case !why.kind.Empty() && t.LeftOut != nil:
			all[p.check] = t.LeftOut.check(p.name, synced(ctx, mgr, p))
		}
		return nil
	})
	return all, err
}

// synced reports whether the objects of a part are in the cache. It makes no calls where the informer exists.
func synced(ctx context.Context, mgr ctrl.Manager, p part) healthz.Checker {
	return func(*http.Request) error {
		informer, err := mgr.GetCache().GetInformer(ctx, p.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("check part %s: %w", p.name, err)
		}
		if !informer.HasSynced() {
			return errNotSynced
		}
		return nil
	}
}

func connected(runtimes *cri.Runtimes) healthz.Checker {
	return func(*http.Request) error {
		for _, r := range runtimes.Found {
			if up, _ := r.Connected(); !up {
				return fmt.Errorf("%s: %w", r.Endpoint(), errNotConnected)
			}
		}
		return nil
	}
}

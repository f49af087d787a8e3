package sidecarset

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

const (
	// maxLive bounds the sets that one pass reads past the cache. Pods name them, and what the owner of a pod writes there may be long.
	maxLive = 16
	// answersKept bounds the answers that are kept, and answersFor is for how long.
	answersKept = 1024
	answersFor  = time.Minute
)

// clock is that of the answers.
type clock func() time.Time

// Now implements the clock of the answers.
func (c clock) Now() time.Time { return c() }

// isGone reports whether a set does not exist, also past a cache that may hold only some sets. When in doubt the set exists.
func (r *Reconciler) isGone(ctx context.Context, name string) bool {
	return lacks(ctx, r.api.Cached, name) && lacks(ctx, r.api.Live, name)
}

func lacks(ctx context.Context, reader client.Reader, name string) bool {
	return apierrors.IsNotFound(reader.Get(ctx, types.NamespacedName{Name: name}, stored.Untyped(gvk()), client.UnsafeDisableDeepCopy))
}

// gone reports which sets do not exist, and remembers it for the pass; what was read past the cache is kept for other passes, too. A set
// that this pass may not read any more exists.
func (p *pass) gone(ctx context.Context) func(string) bool {
	known, left := map[string]bool{p.set.Name: false}, maxLive
	return func(name string) bool {
		if is, asked := known[name]; asked {
			return is
		}
		is := lacks(ctx, p.api.Cached, name)
		if is {
			kept, ok := p.answers.Get(name)
			switch {
			case ok:
				is, _ = kept.(bool)
			case left == 0:
				is = false
			default:
				left--
				is = lacks(ctx, p.api.Live, name)
				p.answers.Add(name, is, answersFor)
			}
		}
		known[name] = is
		return is
	}
}

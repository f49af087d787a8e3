// Package patience lets a manager end that waits for its cache.
//
// A manager starts its parts when its informers have been filled. Where they never are, because the API server is away
// or refuses, controller-runtime does not notice that the process is stopped: it keeps a core busy until it is killed.
package patience

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Until makes caches that do not delay the end of a process, which is when the channel is closed. They are for the
// NewCache of a manager's options. A cache that starts then has an ended context. made makes the caches; nil for
// cache.New.
func Until(end <-chan struct{}, made cache.NewCacheFunc) cache.NewCacheFunc {
	if made == nil {
		made = cache.New
	}
	return func(rc *rest.Config, o cache.Options) (cache.Cache, error) {
		filled, err := made(rc, o)
		return &impatient{Cache: filled, end: end}, err
	}
}

type impatient struct {
	cache.Cache
	end <-chan struct{}
}

// WaitForCacheSync is true also when the process ends: the manager goes on, and sees it.
func (i *impatient) WaitForCacheSync(ctx context.Context) bool {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-i.end:
			cancel()
		case <-waiting.Done():
		}
	}()
	synced := i.Cache.WaitForCacheSync(waiting)
	cancel()
	<-ended
	select {
	case <-i.end:
		return true
	default:
		return synced
	}
}

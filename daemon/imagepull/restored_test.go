package imagepull

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// live reads past the cache.
type live struct {
	client.Reader

	store *store
	reads int
	fault error
}

func (l *live) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.reads++; l.fault != nil {
		return l.fault
	}
	l.store.object.DeepCopyInto(into.(*v1beta1.NodeImage))
	return nil
}

// TestRestored: etcd is restored to an older version before the cache has shown a write. A minute later the daemon
// pulls what the restored NodeImage asks for, after one live read.
func TestRestored(t *testing.T) {
	inWorld(t, func(w *world) {
		l := &live{store: w.store}
		w.options.Live = l
		w.images.pull = takes(time.Second)
		older := w.store.stored()
		asks("redis:1", 0)(older)
		w.store.set(func() { w.store.version = 50 })
		w.begin()
		w.spec(asks("nginx:1", 0))
		w.store.set(func() { w.store.cached = w.store.object.DeepCopy() })
		w.wait(time.Second) // the result of nginx is written, which the cache does not show
		w.wants("nginx:1 v0 Succeeded")
		w.store.set(func() {
			w.store.cached, w.store.version = nil, 4
			w.store.put(older)
		})
		w.wait(2 * time.Minute)
		w.wants("redis:1 v0 Succeeded")
		if l.reads != 1 {
			t.Errorf("%d live reads", l.reads)
		}
	})
}

// TestCacheLagsForMinutes: a cache that lags for minutes costs one live read a minute, and has nothing pulled or
// written twice.
func TestCacheLagsForMinutes(t *testing.T) {
	inWorld(t, func(w *world) {
		l := &live{store: w.store}
		w.options.Live = l
		w.images.pull = takes(time.Second)
		r := w.begin()
		w.spec(asks("nginx:1", 0))
		w.store.set(func() { w.store.cached = w.store.object.DeepCopy() })
		w.wait(time.Second)
		written := w.store.written()
		for range 30 {
			r.api.Requeue(r.request())
			w.wait(10 * time.Second)
		}
		if n := w.store.written(); n != written || l.reads > 5 || l.reads < 4 || len(w.images.pulled()) != 1 {
			t.Errorf("%d writes more, %d live reads, %d pulls", n-written, l.reads, len(w.images.pulled()))
		}
		l.fault = errors.New("connection reset")
		w.wait(2 * time.Minute)
		l.fault = nil
		w.wants("nginx:1 v0 Succeeded")
	})
}

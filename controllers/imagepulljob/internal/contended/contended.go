// Package contended sends the writes of objects that several reconcilers of a process and other clients write at the
// same time.
//
// Writers of one process take turns per object, and see each other's writes in a ledger. A write that was decided upon
// an older state is not sent: its answer is a conflict, with the object as it is, and the pass decides again. So only
// other clients cause conflicts at the API server.
//
// When not to use it: where a patch of separate fields needs no conflict, as of labels or of a map's keys.
package contended

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Sender sends the patches of objects of one kind, and records the answers. The key of an object is also the owner of
// its writes in the ledger.
type Sender[T any, P interface {
	*T
	client.Object
}] struct {
	// Sends sends a write to the API server.
	Sends driver.Send
	// Cached returns the object of the cache, which is only read; nil where there is none.
	Cached func(ctx context.Context, key client.ObjectKey) (P, error)
	// Writes are those of all objects of the kind.
	Writes *ledger.Ledger[P]

	turns [64]sync.Mutex
}

var errChanged = errors.New("another pass of this process has changed the object")

// Latest returns an object of the cache as the own writes left it; nil where it is gone.
func (s *Sender[T, P]) Latest(ctx context.Context, cached P) (P, error) {
	known, _, err := s.Writes.Overlay(ctx, client.ObjectKeyFromObject(cached), []P{cached})
	if err != nil || len(known) == 0 {
		return nil, err
	}
	return known[0], nil
}

// Send sends a write, and answers a conflict and the object where a patch was decided upon an older state of it.
// Objects of other kinds and questions are sent as they are.
func (s *Sender[T, P]) Send( //nolint:ireturn // as driver.Send
	ctx context.Context, w *write.Write,
) (write.Object, error) {
	object, is := w.Object.(P)
	if !is || w.Verb != write.Patch {
		return s.Sends(ctx, w)
	}
	key := client.ObjectKeyFromObject(object)
	turn := s.turn(key)
	turn.Lock()
	defer turn.Unlock()
	latest, err := s.Cached(ctx, key)
	if err == nil && latest != nil {
		latest, err = s.Latest(ctx, latest)
	}
	resource := schema.GroupResource{Resource: w.Kind()}
	switch {
	case err != nil:
		return nil, err
	case latest == nil:
		return nil, apierrors.NewNotFound(resource, key.Name)
	}
	order, err := write.CompareVersions(latest.GetResourceVersion(), object.GetResourceVersion())
	if err == nil && order > 0 {
		return latest, apierrors.NewConflict(resource, key.Name, errChanged)
	}
	answer, err := s.Sends(ctx, w)
	s.Writes.Record(key, w, answer, err)
	return answer, err
}

func (s *Sender[T, P]) turn(key client.ObjectKey) *sync.Mutex {
	h := fnv.New32a()
	fmt.Fprint(h, key)
	return &s.turns[h.Sum32()%uint32(len(s.turns))]
}

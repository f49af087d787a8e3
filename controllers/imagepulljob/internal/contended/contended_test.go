package contended_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/contended"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// bench has one ConfigMap, a client of which all requests are counted, and a cache that never catches up.
type bench struct {
	*objects.Server
	*contended.Writer[corev1.ConfigMap, *corev1.ConfigMap]

	// foreign is called before each write, as another writer would be.
	foreign func() error
	refusal error
	writes  atomic.Int32
	reads   atomic.Int32
}

func newBench(t *testing.T) *bench {
	t.Helper()
	now := func() time.Time { return time.Unix(0, 0) }
	b := &bench{Server: objects.New(scheme.Scheme, now), foreign: func() error { return nil }}
	err := b.Put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"first": "kept"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cached := b.stored(t)
	requests := podbench.Reads(podbench.Writes(b.Server, func(_ string, write func() error) error {
		b.writes.Add(1)
		if b.refusal != nil {
			return b.refusal
		}
		return errors.Join(b.foreign(), write())
	}), func(_ string, read func() error) error {
		b.reads.Add(1)
		return read()
	})
	b.Writer = &contended.Writer[corev1.ConfigMap, *corev1.ConfigMap]{
		Client: requests, Live: requests, Writes: ledger.New[*corev1.ConfigMap](requests, now),
		Cached: func(context.Context, client.ObjectKey) (*corev1.ConfigMap, error) { return cached, nil },
	}
	return b
}

// stored is the ConfigMap as the API server has it.
func (b *bench) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	is := &corev1.ConfigMap{}
	if err := b.Get(t.Context(), key, is); err != nil {
		t.Fatal(err)
	}
	return is
}

func set(key string) func(*corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return func(is *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if is.Data[key] != "" {
			return nil, nil
		}
		is = is.DeepCopy()
		if is.Data == nil {
			is.Data = map[string]string{}
		}
		is.Data[key] = "set"
		return is, nil
	}
}

var key = client.ObjectKey{Namespace: "n", Name: "shared"}

// Writers of one process cause no conflicts, though the cache never shows their writes.
func TestWritersTakeTurns(t *testing.T) {
	b := newBench(t)
	var group sync.WaitGroup
	for i := range 50 {
		group.Add(1)
		go func() {
			defer group.Done()

			if is, err := b.Write(t.Context(), key, set(fmt.Sprint(i))); err != nil || is.Data[fmt.Sprint(i)] != "set" {
				t.Errorf("got %v, %v", is, err)
			}
		}()
	}
	group.Wait()
	if n := len(b.stored(t).Data); n != 51 || b.writes.Load() != 50 || b.reads.Load() != 0 {
		t.Errorf("%d keys after %d writes and %d live reads", n, b.writes.Load(), b.reads.Load())
	}
	if is, err := b.Write(t.Context(), key, set("1")); err != nil || len(is.Data) != 51 || b.writes.Load() != 50 {
		t.Errorf("what is set was written again: %v, %v", is, err)
	}
}

func TestWrite(t *testing.T) {
	broken := errors.New("broken")
	times := func(n int) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			t.Helper()
			b.foreign = func() error {
				if n--; n < 0 {
					return nil
				}
				patch := fmt.Appendf(nil, `{"data":{"foreign%d":"kept"}}`, n)
				return b.Patch(t.Context(), b.stored(t), client.RawPatch(types.MergePatchType, patch))
			}
		}
	}
	gone := func(t *testing.T, b *bench) {
		t.Helper()
		if err := b.Delete(t.Context(), b.stored(t)); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*testing.T, *bench) {}
	cases := map[string]struct {
		prepare func(*testing.T, *bench)
		change  func(*corev1.ConfigMap) (*corev1.ConfigMap, error)
		err     func(error) bool
		exists  bool
		keys    int
		writes  int32
	}{
		"a foreign writer in between": {
			prepare: times(1), change: set("own"), exists: true, keys: 3, writes: 2,
		},
		"foreign writers all the time": {
			prepare: times(100), change: set("own"), err: apierrors.IsConflict, exists: true, writes: 6,
		},
		"the object is gone": {prepare: gone, change: set("own"), writes: 1},
		"the write is refused": {
			prepare: func(_ *testing.T, b *bench) { b.refusal = apierrors.NewBadRequest("no") },
			change:  set("own"), err: apierrors.IsBadRequest, exists: true, writes: 1,
		},
		"the change cannot be made": {
			prepare: nothing, change: func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, broken },
			err: func(err error) bool { return errors.Is(err, broken) }, exists: true,
		},
		"the object is in the right state already": {
			prepare: nothing, change: func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil },
			exists: true, keys: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.prepare(t, b)
			is, err := b.Write(t.Context(), key, c.change)
			if (err != nil) != (c.err != nil) || err != nil && !c.err(err) {
				t.Errorf("got %v", err)
			}
			if (is != nil) != c.exists || b.writes.Load() != c.writes || err == nil && is != nil && len(is.Data) != c.keys {
				t.Errorf("got %v after %d writes", is, b.writes.Load())
			}
		})
	}
}

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
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/apiserver"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/write"
)

// bench has one ConfigMap, a client of which all requests are counted, and a cache that never catches up.
type bench struct {
	*apiserver.Server
	*contended.Sender[corev1.ConfigMap, *corev1.ConfigMap]

	cached        *corev1.ConfigMap
	writes, reads atomic.Int32
}

func newBench(t *testing.T) *bench {
	t.Helper()
	now := func() time.Time { return time.Unix(0, 0) }
	b := &bench{Server: apiserver.New(scheme.Scheme, now)}
	err := b.Put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"first": "kept"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.cached = b.stored(t)
	requests := podbench.Reads(podbench.Writes(b.Server, func(_ string, write func() error) error {
		b.writes.Add(1)
		return write()
	}), func(_ string, read func() error) error {
		b.reads.Add(1)
		return read()
	})
	b.Sender = &contended.Sender[corev1.ConfigMap, *corev1.ConfigMap]{
		Sends: runtimeclient.Sender(requests, requests), Writes: ledger.New[*corev1.ConfigMap](requests, now),
		Cached: func(context.Context, client.ObjectKey) (*corev1.ConfigMap, error) { return b.cached, nil },
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

// set is the write that sets a key of what was read.
func set(is *corev1.ConfigMap, key string) *write.Write {
	changed := is.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	changed.Data[key] = "set"
	return stored.Change(is, changed)
}

// sets sends the write of a key, and again for as long as another writer of this process was faster.
func (b *bench) sets(ctx context.Context, key string) (*corev1.ConfigMap, error) {
	for is := b.cached; ; {
		answer, err := b.Send(ctx, set(is, key))
		object, _ := answer.(*corev1.ConfigMap)
		if !apierrors.IsConflict(err) || object == nil {
			return object, err
		}
		is = object
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

			if is, err := b.sets(t.Context(), fmt.Sprint(i)); err != nil || is.Data[fmt.Sprint(i)] != "set" {
				t.Errorf("got %v, %v", is, err)
			}
		}()
	}
	group.Wait()
	if n := len(b.stored(t).Data); n != 51 || b.writes.Load() != 50 || b.reads.Load() != 0 {
		t.Errorf("%d keys after %d writes and %d live reads", n, b.writes.Load(), b.reads.Load())
	}
	if is, err := b.Latest(t.Context(), b.cached); err != nil || len(is.Data) != 51 {
		t.Errorf("the own writes left %v, %v", is, err)
	}
}

func TestSend(t *testing.T) {
	broken := errors.New("broken")
	b := newBench(t)
	foreign := client.RawPatch(types.MergePatchType, []byte(`{"data":{"foreign":"kept"}}`))
	if err := b.Patch(t.Context(), b.stored(t), foreign); err != nil {
		t.Fatal(err)
	}
	answer, err := b.Send(t.Context(), set(b.cached, "own"))
	if !apierrors.IsConflict(err) || answer != nil || b.writes.Load() != 1 {
		t.Errorf("after a foreign write: got %v, %v", answer, err)
	}
	live, err := b.Send(t.Context(), &write.Write{Verb: write.Get, Object: b.cached})
	if err != nil || b.reads.Load() != 1 {
		t.Fatalf("a question is asked of the API server: got %v after %d reads", err, b.reads.Load())
	}
	answer, err = b.Send(t.Context(), set(live.(*corev1.ConfigMap), "own"))
	if err != nil || len(answer.(*corev1.ConfigMap).Data) != 3 || b.writes.Load() != 2 {
		t.Errorf("upon the live object, which the cache lacks: got %v, %v", answer, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", ResourceVersion: "1"}}
	if _, err = b.Send(t.Context(), stored.Change(pod, pod)); !apierrors.IsNotFound(err) || b.writes.Load() != 3 {
		t.Errorf("another kind is sent as it is: got %v", err)
	}
	for name, c := range map[string]struct {
		cached error
		is     func(error) bool
	}{
		"the cache lacks the object": {nil, apierrors.IsNotFound},
		"the cache cannot be read":   {broken, func(err error) bool { return errors.Is(err, broken) }},
	} {
		b.Cached = func(context.Context, client.ObjectKey) (*corev1.ConfigMap, error) { return nil, c.cached }
		if _, err = b.Send(t.Context(), set(b.cached, "own")); !c.is(err) || b.writes.Load() != 3 {
			t.Errorf("%s: got %v after %d writes", name, err, b.writes.Load())
		}
	}
}

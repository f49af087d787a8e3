package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

func TestPause(t *testing.T) {
	r, err := New(&warehouse{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for took, want := range map[time.Duration]time.Duration{
		0: shortestPause, time.Millisecond: shortestPause, 100 * time.Millisecond: 500 * time.Millisecond,
		time.Minute: time.Second,
	} {
		r.memory.Note("s", func(known *state) { known.took = took })
		if got := r.pause("s"); got != want {
			t.Errorf("to look and plan takes %s: want %s, got %s", took, want, got)
		}
	}
	if got := r.pause("other"); got != shortestPause {
		t.Errorf("of a set that is not known: got %s", got)
	}
}

func TestTerminal(t *testing.T) {
	spec, other := &rollout.SpecError{Field: "spec.selector", Err: errors.New("odd")}, errors.New("other")
	for name, c := range map[string]struct {
		err      error
		terminal bool
	}{
		"the spec":          {spec, true},
		"only the spec":     {errors.Join(nil, errors.Join(spec, spec)), true},
		"and another":       {errors.Join(spec, other), false},
		"not at all":        {other, false},
		"wrapped by a pass": {fmt.Errorf("pass: %w", other), false},
	} {
		if got := errors.Is(terminal(c.err), reconcile.TerminalError(nil)); got != c.terminal {
			t.Errorf("%s: retried: %t", name, !got)
		}
	}
}

// requests are the names of the sets that are enqueued.
type requests struct {
	queue

	names []string
}

func (r *requests) AddAfter(item reconcile.Request, _ time.Duration) {
	r.names = append(r.names, item.Name)
}

// only is a cache that has one set, and nothing else.
type only struct{ *warehouse }

func (o only) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if key.Name != o.set.Name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "sidecarsets"}, key.Name)
	}
	return o.warehouse.Get(ctx, key, into, opts...)
}

// TestRecordsOfUnknownSets: a pod may record what its owner writes there. Only sets that exist look at it.
func TestRecordsOfUnknownSets(t *testing.T) {
	names := []string{"mesh", "gone"}
	for i := range 50_000 {
		names = append(names, fmt.Sprintf("n%05d", i))
	}
	hostile := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		kruise.SidecarSetInjectedListKey: strings.Join(names, ","),
	}}}
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	for name, c := range map[string]struct {
		send func(r *Reconciler, q queue)
		want []string
	}{
		"create": {func(r *Reconciler, q queue) {
			r.podEvents().Create(t.Context(), event.CreateEvent{Object: hostile}, q)
		}, []string{"mesh"}},
		"update": {func(r *Reconciler, q queue) {
			r.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: bare, ObjectNew: hostile}, q)
		}, []string{"mesh"}},
		"delete": {func(r *Reconciler, q queue) {
			r.podEvents().Delete(t.Context(), event.DeleteEvent{Object: hostile}, q)
		}, []string{"mesh"}},
	} {
		for _, refresh := range []bool{false, true} {
			r, err := New(only{stock(t, 0)}, Options{RefreshNotUpdate: refresh})
			if err != nil {
				t.Fatal(err)
			}
			q := &requests{}
			c.send(r, q)
			if slices.Sort(q.names); !slices.Equal(q.names, c.want) {
				t.Errorf("%s (RefreshNotUpdate %t): %d requests, want %s, got %.5s", name, refresh, len(q.names), c.want, q.names)
			}
		}
	}
}

package sidecarset

import (
	"context"
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
	"github.com/kruisekit/kruisekit/internal/watches"
)

// TestProgress: updates stand after the limit without progress, and no longer when a pod became ready.
func TestProgress(t *testing.T) {
	var known state
	start := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		why  string
		at   time.Duration
		step string
		want time.Duration
	}{
		{"nothing waits", 0, "", 0},
		{"a wait begins", time.Second, "1", time.Minute},
		{"it is not long", time.Minute, "1", time.Second},
		{"the limit is over", time.Minute + time.Second, "1", 0},
		{"it goes on", 2 * time.Minute, "1", time.Second - time.Minute},
		{"a pod is ready", 2 * time.Minute, "2", time.Minute},
		{"none waits", 5 * time.Minute, "", 0},
		{"they wait again", 5 * time.Minute, "2", time.Minute},
	} {
		if got := known.progress(c.step, start.Add(c.at), time.Minute); got != c.want {
			t.Errorf("%s: %s is left, want %s", c.why, got, c.want)
		}
	}
}

// requests are the names of the sets that are enqueued.
type requests struct {
	watches.Queue

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
		send func(r *Reconciler, q watches.Queue)
		want []string
	}{
		"create": {func(r *Reconciler, q watches.Queue) {
			r.podEvents().Create(t.Context(), event.CreateEvent{Object: hostile}, q)
		}, []string{"mesh"}},
		"update": {func(r *Reconciler, q watches.Queue) {
			r.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: bare, ObjectNew: hostile}, q)
		}, []string{"mesh"}},
		"delete": {func(r *Reconciler, q watches.Queue) {
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

package imagepull

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The messages of all pulls are renewed at once, once a minute.
func TestProgress(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = func(ctx context.Context, c call) (string, error) {
			if c.reference == "nginx:1" && c.number == 1 {
				return "", errRegistry
			}
			return takes(8*time.Minute+30*time.Second)(ctx, c)
		}
		w.begin()
		w.spec(asks("nginx:1", 0))
		w.wait(20 * time.Second)
		w.spec(asks("redis:1", 0))
		began := w.store.written()
		w.wait(8 * time.Minute)
		if n := w.store.written() - began; n > 8 {
			t.Errorf("%d writes in 8 minutes", n)
		}
		if got, want := w.tag("nginx:1").Message,
			"pulling for 8m0s, attempt 2 of 4, before: "+errRegistry.Error(); got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		if got, want := w.tag("redis:1").Message, "pulling for 7m40s, attempt 1 of 4"; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		want := []string{
			"n1: Normal PullImageSlow Image nginx:1: pulling for 5m0s, attempt 2 of 4, before: " + errRegistry.Error(),
			"n1: Normal PullImageSlow Image redis:1: pulling for 5m40s, attempt 1 of 4",
		}
		if diff := cmp.Diff(want, w.events.take()); diff != "" {
			t.Error(diff)
		}
		w.wait(2 * time.Minute)
		w.wants("nginx:1 v0 Succeeded, redis:1 v0 Succeeded")
		if m := w.tag("nginx:1").Message; m != "" {
			t.Errorf("message %q at the end", m)
		}
	})
}

// Whatever others do to the status, it is mended, and nothing is pulled again for that.
func TestOverwritesAreMended(t *testing.T) {
	for why, overwrite := range map[string]func(*v1beta1.NodeImageStatus){
		"wiped":      func(s *v1beta1.NodeImageStatus) { *s = v1beta1.NodeImageStatus{} },
		"miscounted": func(s *v1beta1.NodeImageStatus) { s.Succeeded, s.Waiting = 7, 7 },
		"more than is": func(s *v1beta1.NodeImageStatus) {
			s.ImageStatuses["x"] = v1beta1.ImageStatus{Tags: []v1beta1.ImageTagStatus{{Tag: "1"}}}
		},
		"not ended":      func(s *v1beta1.NodeImageStatus) { s.ImageStatuses["nginx"].Tags[0].CompletionTime = nil },
		"another round":  func(s *v1beta1.NodeImageStatus) { s.ImageStatuses["nginx"].Tags[0].Version = 9 },
		"a tag is taken": func(s *v1beta1.NodeImageStatus) { delete(s.ImageStatuses, "nginx") },
	} {
		t.Run(why, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.begin()
				w.spec(asks("nginx:1", 0), asks("redis:1", 0))
				w.wait(10 * time.Second)
				before := w.store.stored().Status
				w.store.change(func(n *v1beta1.NodeImage) { overwrite(&n.Status) })
				w.wait(10 * time.Second)
				after := w.store.stored().Status
				if first := after.FirstSyncStatus; first == nil {
					t.Error("the first sync is forgotten")
				}
				before.FirstSyncStatus, after.FirstSyncStatus = nil, nil
				if diff := cmp.Diff(before, after); diff != "" {
					t.Error(diff)
				}
				if n := len(w.images.pulled()); n != 2 {
					t.Errorf("%d pulls", n)
				}
				if n := len(w.events.take()); n != 2 {
					t.Errorf("%d events", n)
				}
			})
		})
	}
}

// An API server that is away costs nothing but time: results are kept, and reported when they are written.
func TestAPIServerIsAway(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begin()
		w.store.set(func() { w.store.refuse = apierrors.NewServiceUnavailable("away") })
		w.spec(asks("nginx:1", 0))
		w.wait(10 * time.Minute)
		w.wants("")
		if told := w.events.take(); told != nil {
			t.Errorf("told %q of what is not written", told)
		}
		// Attempts go on in time, however long the pauses between writes are by now.
		w.images.mu.Lock()
		w.images.pull = fails(errRegistry)
		w.images.mu.Unlock()
		w.spec(asks("redis:1", 0))
		w.wait(7 * time.Second)
		if n := len(w.images.pulled()); n != 5 {
			t.Errorf("%d attempts of two images", n)
		}
		w.spec(leaves("redis"))
		w.store.set(func() { w.store.refuse = nil })
		w.wait(2 * time.Minute)
		w.wants("nginx:1 v0 Succeeded")
		if told := w.events.take(); len(told) != 1 {
			t.Errorf("told %q", told)
		}
	})
}

// A write whose answer is lost is reported nevertheless, and not repeated.
func TestAnswerIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begin()
		w.store.set(func() { w.store.lose = true })
		w.spec(asks("nginx:1", 0))
		w.store.set(func() { w.store.lose = false })
		w.wait(time.Minute)
		w.wants("nginx:1 v0 Succeeded")
		if told := w.events.take(); len(told) != 1 {
			t.Errorf("told %q", told)
		}
		if n := w.store.written(); n > 2 {
			t.Errorf("%d writes", n)
		}
	})
}

// A cache that lags behind has nothing pulled or written twice.
func TestCacheLagsBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull, w.options.Live = takes(time.Second), &live{store: w.store}
		r := w.begin()
		w.spec(asks("nginx:1", 0))
		w.store.set(func() { w.store.cached = w.store.object.DeepCopy() })
		w.wait(time.Second)
		written := w.store.written()
		for range 5 {
			r.bell.ring(0)
			w.wait(time.Minute)
		}
		if n := w.store.written(); n != written {
			t.Errorf("%d writes more", n-written)
		}
		w.wants("nginx:1 v0 Succeeded")
		if n := len(w.images.pulled()); n != 1 {
			t.Errorf("%d pulls", n)
		}
	})
}

// What a controller writes between a read and a write stays.
func TestNobodyIsOverwritten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = takes(time.Minute)
		w.begin()
		w.spec(asks("nginx:1", 0))
		w.store.set(func() { w.store.cached, w.store.notify = w.store.object.DeepCopy(), func() {} })
		w.store.change(func(n *v1beta1.NodeImage) {
			s := &n.Status.ImageStatuses["nginx"].Tags[0]
			s.Phase, s.CompletionTime, s.Message = v1beta1.ImagePhaseFailed, ptr.To(metav1.Now()), "too late"
		})
		w.wait(2 * time.Minute)
		if s := w.tag("nginx:1"); s.Message != "too late" {
			t.Errorf("status %+v", s)
		}
		w.store.set(func() { w.store.cached = nil })
		w.wait(time.Minute)
		if s := w.tag("nginx:1"); s.Message != "too late" {
			t.Errorf("status %+v", s)
		}
		if told := w.events.take(); told != nil {
			t.Errorf("told %q", told)
		}
	})
}

package imagepull

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Whatever others do to the status, it is mended. A result that another writer removes is pulled again.
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
				w.store.change(func(n *v1beta1.NodeImage) { overwrite(&n.Status) })
				w.wait(10 * time.Second)
				w.wants("nginx:1 v0 Succeeded, redis:1 v0 Succeeded")
				if s := w.store.stored().Status; s.Succeeded != 2 || s.Waiting != 0 || s.FirstSyncStatus == nil {
					t.Errorf("status %+v", s)
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

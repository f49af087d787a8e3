package imagepull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

var errRegistry = errors.New(`pull image "nginx:1": registry is on fire`)

func TestImageIsPulled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = takes(3 * time.Second)
		w.begin()
		if n := w.store.written(); n != 0 {
			t.Errorf("%d writes about nothing", n)
		}
		w.spec(asks("nginx:1", 4))
		start := metav1.Now().Rfc3339Copy()
		want := v1beta1.ImageTagStatus{Tag: "1", Version: 4, Phase: v1beta1.ImagePhasePulling, StartTime: &start}
		if diff := cmp.Diff(want, w.tag("nginx:1")); diff != "" {
			t.Errorf("under way (-want +got):\n%s", diff)
		}
		if status := w.store.stored().Status; status.Pulling != 1 || status.Desired != 1 || status.FirstSyncStatus != nil {
			t.Errorf("status %+v", status)
		}
		w.wait(3 * time.Second)
		end := metav1.Now().Rfc3339Copy()
		want.Phase, want.Progress, want.CompletionTime, want.ImageID = v1beta1.ImagePhaseSucceeded, 100, &end,
			"nginx@sha256:1"
		if diff := cmp.Diff(want, w.tag("nginx:1")); diff != "" {
			t.Errorf("at the end (-want +got):\n%s", diff)
		}
		first := &v1beta1.SyncStatus{SyncAt: end, Status: v1beta1.SyncStatusSucceeded}
		if diff := cmp.Diff(first, w.store.stored().Status.FirstSyncStatus); diff != "" {
			t.Errorf("first sync (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"n1: Normal PullImageSucceed Image nginx:1 is there, after 3s"},
			w.events.take()); diff != "" {
			t.Error(diff)
		}
		sandbox := cri.SandboxConfig{Annotations: map[string]string{"apps.kruise.io/pulling-image-by": "kruise-daemon"}}
		if diff := cmp.Diff(sandbox, w.images.calls[0].sandbox); diff != "" {
			t.Errorf("sandbox (-want +got):\n%s", diff)
		}
	})
}

// The status is the memory: after a restart, what has ended is not pulled again, and what has not begins again.
func TestRestart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = func(ctx context.Context, c call) (string, error) {
			if c.reference == "slow:1" && c.number == 1 {
				return takes(time.Hour)(ctx, c)
			}
			return takes(time.Second)(ctx, c)
		}
		w.begin()
		w.spec(asks("nginx:1", 2), asks("slow:1", 0))
		w.wait(10 * time.Second)
		w.wants("nginx:1 v2 Succeeded, slow:1 v0 Pulling")
		w.end()
		w.wants("nginx:1 v2 Succeeded, slow:1 v0 Pulling")
		if _, now := w.images.asked(); now != 0 {
			t.Errorf("%d pulls go on when the process has ended", now)
		}
		w.begin()
		w.wait(10 * time.Second)
		w.wants("nginx:1 v2 Succeeded, slow:1 v0 Succeeded")
		if diff := cmp.Diff([]string{"nginx:1", "slow:1", "slow:1"},
			slices.Sorted(slices.Values(w.images.pulled()))); diff != "" {
			t.Errorf("pulled (-want +got):\n%s", diff)
		}
		if told := w.events.take(); len(told) != 2 {
			t.Errorf("told %q", told)
		}
	})
}

// A pull that has failed for good reports the reason in the status of the node and of its job.
func TestFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = fails(errRegistry)
		w.begin()
		w.spec(asks("nginx:1", 0, limited(2)))
		w.wait(time.Minute)
		if n := len(w.images.pulled()); n != 3 {
			t.Errorf("%d attempts", n)
		}
		s := w.tag("nginx:1")
		if s.Phase != v1beta1.ImagePhaseFailed || s.Message != errRegistry.Error() {
			t.Errorf("status %+v", s)
		}
		text := `Warning PullImageFailed Image nginx:1 was not pulled on node n1: ` + errRegistry.Error()
		if diff := cmp.Diff([]string{"shop/job: " + text, "n1: " + text}, w.events.take()); diff != "" {
			t.Error(diff)
		}
		if first := w.store.stored().Status.FirstSyncStatus; first == nil || first.Status != v1beta1.SyncStatusFailed ||
			first.Message == "" {
			t.Errorf("first sync %+v", first)
		}
	})
}

// The deadline ends what is being pulled, and what has not had its turn.
func TestDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.MaxPulls = 1
		w.images.pull = takes(time.Hour)
		w.begin()
		w.spec(asks("nginx:1", 0, before(5)), asks("nginx:2", 0, before(-1)))
		w.wait(4 * time.Second)
		w.wants("nginx:1 v0 Pulling, nginx:2 v0 Waiting")
		w.wait(time.Second)
		w.wants("nginx:1 v0 Failed, nginx:2 v0 Failed")
		if s := w.tag("nginx:1"); s.Message != "pulling exceeds the activeDeadlineSeconds" {
			t.Errorf("status %+v", s)
		}
	})
}

func TestTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = takes(time.Hour)
		w.begin()
		w.spec(asks("nginx:1", 0, within(7), limited(0)))
		w.wait(7 * time.Second)
		if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhaseFailed ||
			s.Message != `pull image "nginx:1": no result within 7s` {
			t.Errorf("status %+v", s)
		}
		if _, now := w.images.asked(); now != 0 {
			t.Error("the pull goes on")
		}
	})
}

// With IfNotPresent the registry is asked only for what is not there; what the runtime cannot tell is not there.
func TestPresence(t *testing.T) {
	nginx := cri.Image{ID: "sha256:7", Tags: []string{"docker.io/library/nginx:1"}}
	for why, test := range map[string]struct {
		change []func(*v1beta1.ImageTagSpec)
		find   func(string) (cri.Image, error)
		pulls  int
		id     string
	}{
		"it is there": {
			change: []func(*v1beta1.ImageTagSpec){ifNotPresent},
			find:   func(string) (cri.Image, error) { return nginx, nil },
			id:     "nginx@sha256:7",
		},
		"it is not": {
			change: []func(*v1beta1.ImageTagSpec){ifNotPresent},
			find:   func(string) (cri.Image, error) { return cri.Image{}, cri.ErrNotFound },
			pulls:  1,
			id:     "nginx@sha256:nginx:1",
		},
		"another is": {
			change: []func(*v1beta1.ImageTagSpec){ifNotPresent},
			find:   func(string) (cri.Image, error) { return cri.Image{ID: "x", Tags: []string{"quay.io/nginx:1"}}, nil },
			pulls:  1,
			id:     "nginx@sha256:nginx:1",
		},
		"it is there, and always pulled": {
			find: func(string) (cri.Image, error) { return nginx, nil }, pulls: 1, id: "nginx@sha256:nginx:1",
		},
		"the runtime does not know": {
			change: []func(*v1beta1.ImageTagSpec){ifNotPresent},
			find:   func(string) (cri.Image, error) { return cri.Image{}, errRegistry },
			pulls:  1,
			id:     "nginx@sha256:nginx:1",
		},
	} {
		t.Run(why, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.images.find = test.find
				w.begin()
				w.spec(asks("nginx:1", 0, test.change...))
				if n := len(w.images.pulled()); n != test.pulls {
					t.Errorf("%d pulls", n)
				}
				if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhaseSucceeded || s.ImageID != test.id || s.Progress != 100 {
					t.Errorf("status %+v", s)
				}
			})
		})
	}
}

// The API server has many nodes to serve, so writes are limited: five at once, then one in two seconds, and the last
// result is among them.
func TestWritesAreLimited(t *testing.T) {
	inWorld(t, func(w *world) {
		began := time.Now()
		w.begin()
		const tags = 40
		for i := range tags {
			w.spec(asks(fmt.Sprintf("nginx:%d", i), 0))
			w.wait(250 * time.Millisecond)
		}
		w.wait(time.Minute)
		if s := w.store.stored().Status; s.Succeeded != tags || s.Desired != tags {
			t.Errorf("%d of %d succeeded", s.Succeeded, s.Desired)
		}
		writes := slices.Clone(w.store.writes)
		for i, at := range writes {
			allowed := 5 + int(at.Sub(began)/(2*time.Second))
			if i+1 > allowed {
				t.Errorf("write %d after %s, when %d are allowed", i+1, at.Sub(began), allowed)
			}
		}
		if told := len(w.events.take()); told != tags {
			t.Errorf("%d events for %d pulls", told, tags)
		}
		// Nothing more happens, not even the runtime is asked.
		asked, _ := w.images.asked()
		w.wait(48 * time.Hour)
		if again, _ := w.images.asked(); again != asked || w.store.written() != len(writes) {
			t.Errorf("%d calls of the runtime and %d writes when nothing has changed",
				again-asked, w.store.written()-len(writes))
		}
	})
}

// An event counts when it may be about what is to be pulled, or about what another client says of it.
func TestEventsThatCount(t *testing.T) {
	at := func(change func(*v1beta1.NodeImage)) *v1beta1.NodeImage {
		n := newStore().object.DeepCopy()
		asks("nginx:1", 0)(n)
		change(n)
		return n
	}
	old := at(func(*v1beta1.NodeImage) {})
	for why, test := range map[string]struct {
		change func(*v1beta1.NodeImage)
		want   bool
	}{
		"nothing": {func(*v1beta1.NodeImage) {}, false},
		"labels": {
			func(n *v1beta1.NodeImage) { n.Labels, n.ResourceVersion = map[string]string{"a": "b"}, "2" }, false,
		},
		"the spec":          {asks("nginx:1", 1), true},
		"the status":        {func(n *v1beta1.NodeImage) { n.Status.Desired = 7 }, true},
		"it is another one": {func(n *v1beta1.NodeImage) { n.UID = "u2" }, true},
		"it is deleted":     {func(n *v1beta1.NodeImage) { n.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	} {
		if got := asked().Update(updateOf(old, at(test.change))); got != test.want {
			t.Errorf("%s: %v", why, got)
		}
	}
}

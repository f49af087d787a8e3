package runtimeclient_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/workload"
)

// sites is the operator of sites with a cache that a test freezes.
type sites struct {
	*objects.Model

	cache   *apiserver.Lagging
	events  *record.FakeRecorder
	site    *Site
	request reconcile.Request
	r       *siteReconciler
}

func newSites(t *testing.T) *sites {
	t.Helper()
	w := &sites{Model: objects.NewModel(t, &SiteList{}, addSites)}
	w.cache = w.Server.Lagging()
	w.events = record.NewFakeRecorder(10)
	w.r = &siteReconciler{runtimeclient.NewWorkloads(w.cache, w.Server, runtimeclient.WorkloadsOptions{
		Now: w.Now, Recorder: w.events,
	})}
	w.site = &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	w.site.SetGroupVersionKind(siteKind)
	w.site.Spec.Replicas = 3
	w.site.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	w.Put(w.site)
	w.request.NamespacedName = client.ObjectKeyFromObject(w.site)
	return w
}

// writes makes a pass and returns its result and its writes to pods and revisions.
func (w *sites) writes(t *testing.T) (reconcile.Result, []string) {
	t.Helper()
	w.Server.Requests()
	result, err := w.r.Reconcile(t.Context(), w.request)
	if err != nil {
		t.Fatal(err)
	}
	return result, slices.DeleteFunc(w.Server.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.Contains(request, "sites")
	})
}

// delete deletes the site and all that it has.
func (w *sites) delete(t *testing.T) {
	t.Helper()
	var revisions appsv1.ControllerRevisionList
	if err := w.Server.List(t.Context(), &revisions); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{w.site}
	for _, pod := range w.Pods() {
		objects = append(objects, pod)
	}
	for i := range revisions.Items {
		objects = append(objects, &revisions.Items[i])
	}
	for _, object := range objects {
		if err := w.Server.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// A pass sees what earlier ones have written before the cache does, and looks again where no event may follow.
func TestWorkloadsSeeOwnWrites(t *testing.T) {
	w := newSites(t)
	w.cache.Freeze()
	if _, writes := w.writes(t); len(writes) != 4 {
		t.Errorf("the first pass wrote %v, want a revision and three pods", writes)
	}
	result, writes := w.writes(t)
	if len(writes) != 0 {
		t.Errorf("the cache lags, and the next pass wrote %v", writes)
	}
	if result.RequeueAfter <= 0 || result.RequeueAfter > ledger.Patience {
		t.Errorf("the cache lags, and the site is reconciled again after %v", result.RequeueAfter)
	}
	w.cache.Thaw()
	if result, writes = w.writes(t); len(writes) != 0 || result.RequeueAfter != 0 {
		t.Errorf("the cache is up to date, and the pass wrote %v, and looks again after %v", writes, result.RequeueAfter)
	}
}

// What is known of an object ends with it: another one of its name inherits nothing.
func TestWorkloadsForget(t *testing.T) {
	for name, gone := range map[string]bool{"its end is seen": true, "its end is not seen": false} {
		t.Run(name, func(t *testing.T) {
			w := newSites(t)
			w.cache.Freeze()
			w.writes(t)
			w.cache.Thaw()
			w.delete(t)
			if gone {
				w.writes(t)
			} else {
				w.Advance(2 * ledger.Patience)
			}
			w.site.ResourceVersion, w.site.UID = "", ""
			w.Put(w.site)
			_, writes := w.writes(t)
			if pods := len(w.Pods()); pods != 3 {
				t.Errorf("the new site has %d pods after %v", pods, writes)
			}
		})
	}
}

// An error of Get other than NotFound is returned, and what is known stays.
func TestWorkloadsGone(t *testing.T) {
	w := newSites(t)
	w.cache.Freeze()
	w.writes(t)
	if _, err := w.r.Gone(w.request, context.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, writes := w.writes(t); len(writes) != 0 {
		t.Errorf("the next pass wrote %v", writes)
	}
}

// Without a plan there is no pass, and nothing is written.
func TestWorkloadsRunInvalid(t *testing.T) {
	w := newSites(t)
	w.Server.Requests()
	pass, err := w.r.Run(t.Context(), w.site, workload.Input{Group: workload.Group{Label: "a"}})
	if pass != nil || err == nil || len(w.Server.Requests()) != 0 {
		t.Errorf("got %v, %v", pass, err)
	}
}

// What blocks a workload is an event, once until it ends.
func TestWorkloadsEmit(t *testing.T) {
	w := newSites(t)
	emitted := func() (all []string) {
		w.writes(t)
		for len(w.events.Events) > 0 {
			all = append(all, <-w.events.Events)
		}
		return all
	}
	waits := func(why string) {
		w.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
			if why != "" {
				pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: why}
			}
			return pod
		})
	}
	if got := emitted(); len(got) != 0 {
		t.Errorf("pods are created, and the events are %q", got)
	}
	for _, round := range []string{"first", "again, once its end was seen"} {
		waits("ImagePullBackOff")
		if got := emitted(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning "+workload.NoteImagePull) {
			t.Errorf("%s: an image cannot be pulled, and the events are %q", round, got)
		}
		if got := emitted(); len(got) != 0 {
			t.Errorf("%s: nothing has changed, and the events are %q", round, got)
		}
		waits("")
		if got := emitted(); len(got) != 0 {
			t.Errorf("%s: nothing blocks, and the events are %q", round, got)
		}
	}
}

// A status that has not changed costs no write.
func TestPatchStatus(t *testing.T) {
	w := newSites(t)
	w.Look(w.site)
	stale := w.site.DeepCopy()
	stale.ResourceVersion = "0"
	for name, c := range map[string]struct {
		before  *Site
		pods    int32
		options []client.MergeFromOption
		writes  int
		fails   bool
	}{
		"nothing changed": {before: w.site},
		"it changed":      {before: w.site, pods: 3, writes: 1},
		"it was decided on an old site": {
			before: stale, pods: 4, writes: 1, fails: true,
			options: []client.MergeFromOption{client.MergeFromWithOptimisticLock{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.Server.Requests()
			after := c.before.DeepCopy()
			after.Status.UpdatedPods = c.pods
			err := w.r.PatchStatus(t.Context(), c.before, after, c.options...)
			if writes := w.Server.Requests(); len(writes) != c.writes || (err != nil) != c.fails {
				t.Errorf("got %v, %v, want %d writes", writes, err, c.writes)
			}
		})
	}
}

package imagepull

import (
	gocmp "cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

// A runtime that restarts in the middle of a pull costs no attempt, and the pull goes on as soon as the runtime is
// back.
func TestRuntimeRestarts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = func(ctx context.Context, c call) (string, error) {
			if c.reference == "nginx:1" && c.number == 1 {
				_, _ = takes(10*time.Second)(ctx, c)
				w.images.connect(false)
				return "", fmt.Errorf("pull image: %w", cri.ErrUnavailable)
			}
			return "sha256:1", nil
		}
		w.begin()
		w.spec(asks("nginx:1", 0, limited(0)))
		w.wait(9 * time.Minute)
		w.wants("nginx:1 v0 Pulling")
		if n := len(w.images.pulled()); n != 1 {
			t.Errorf("%d attempts while the runtime is away", n)
		}
		w.spec(asks("redis:1", 0))
		w.wants("nginx:1 v0 Pulling, redis:1 v0 Pulling")
		w.images.connect(true)
		w.settle()
		w.wait(2 * time.Second)
		w.wants("nginx:1 v0 Succeeded, redis:1 v0 Succeeded")
	})
}

// One that is there and does not answer is asked again, which costs no attempt until the timeout of an attempt is over.
func TestRuntimeDoesNotAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.find = func(string) (cri.Image, error) { return cri.Image{}, cri.ErrUnavailable }
		w.begin()
		w.spec(asks("nginx:1", 0, ifNotPresent, limited(1)))
		w.wait(599 * time.Second)
		w.wants("nginx:1 v0 Pulling")
		if asked, _ := w.images.asked(); asked < 100 || asked > 130 {
			t.Errorf("asked %d times in ten minutes", asked)
		}
		w.wait(2 * time.Second)
		if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhasePulling || !strings.HasPrefix(s.Message, "attempt 1 of 2") {
			t.Errorf("after ten minutes the status is %+v", s)
		}
		w.wait(11 * time.Minute)
		w.wants("nginx:1 v0 Failed")
	})
}

// A pull ends also where the runtime never comes back.
func TestRuntimeStaysAway(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.connect(false)
		w.begin()
		w.spec(asks("nginx:1", 0, limited(0)))
		w.wait(599 * time.Second)
		w.wants("nginx:1 v0 Pulling")
		w.wait(2 * time.Second)
		w.wants("nginx:1 v0 Failed")
	})
}

func TestTurns(t *testing.T) {
	for why, test := range map[string]struct {
		limits int
		// ready are registries, each with the namespaces of its jobs, in the order of their places.
		ready string
		// busy are registries in the same way, with how often; once where that is left out.
		busy string
		want int
	}{
		"no pull waits":              {0, "", "", -1},
		"who came first":             {0, "a b", "", 0},
		"the least busy":             {0, "a b", "a", 1},
		"all places are taken":       {0, "a", "b=3 c=2", -1},
		"one registry has its share": {0, "a", "a=4", -1},
		"another has not":            {0, "a b a", "a=4", 1},
		"two places are for anybody": {2, "a", "a", 0},
		"one place":                  {1, "a", "a", -1},
		"no limit":                   {-1, "a", "a=1000", 0},

		"a namespace with many registries leaves a place":  {0, "e:evil", "a:evil b:evil c:evil d:evil", -1},
		"which another one gets":                           {0, "e:evil f:shop", "a:evil b:evil c:evil d:evil", 1},
		"the least busy namespace goes first":              {0, "a:evil b:shop", "c:evil", 1},
		"before the least busy registry":                   {0, "a:evil b:shop", "c:evil b", 1},
		"two places are for any namespace":                 {2, "b:evil", "a:evil", 0},
		"a pull for several counts for the least busy one": {0, "b:evil,shop", "a:evil b:evil c:evil d:evil", 0},
		"a pull that no job asked for counts for none":     {0, "e", "a=4", 0},
	} {
		jobs := func(text string) (all []*job) {
			for i, one := range strings.Fields(text) {
				registry, namespaces, _ := strings.Cut(one, ":")
				j := &job{registry: registry, place: int64(i)}
				for namespace := range strings.SplitSeq(namespaces, ",") {
					if namespace != "" {
						ownedByMore(namespace + "/job")(&j.Tag)
					}
				}
				all = append(all, j)
			}
			return all
		}
		busy := newLoad()
		for _, j := range jobs(test.busy) {
			registry, times, _ := strings.Cut(j.registry, "=")
			n, err := strconv.Atoi(gocmp.Or(times, "1"))
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				busy.add(registry, busy.payer(j))
			}
		}
		if got := newTurns(test.limits).next(jobs(test.ready), busy); got != test.want {
			t.Errorf("%s: %d, want %d", why, got, test.want)
		}
	}
}

// One namespace with many slow registries and long timeouts leaves a place to another.
func TestNamespacesAreFair(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.MaxPulls = 3
		w.images.pull = func(ctx context.Context, c call) (string, error) {
			if strings.HasPrefix(c.reference, "slow") {
				return takes(1000*time.Hour)(ctx, c)
			}
			return takes(time.Second)(ctx, c)
		}
		w.begin()
		var all []func(*v1beta1.NodeImage)
		for i := range 20 {
			all = append(all, asks(fmt.Sprintf("slow-%d.io/app:1", i), 0, within(1<<30), ownedBy("evil/job")))
		}
		w.spec(all...)
		w.spec(asks("nginx:1", 0, ownedBy("shop/job")))
		w.wait(2 * time.Second)
		if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhaseSucceeded {
			t.Errorf("%+v", s)
		}
	})
}

// A call that does not end when it is cancelled keeps its place: the limit is that of the runtime.
func TestCancelledPullsCount(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.MaxPulls = 1
		w.images.pull = func(ctx context.Context, c call) (string, error) {
			if c.reference == "nginx:1" {
				ctx = context.WithoutCancel(ctx)
			}
			return takes(time.Minute)(ctx, c)
		}
		w.begin()
		w.spec(asks("nginx:1", 0))
		w.spec(leaves("nginx"), asks("redis:1", 0))
		w.wait(59 * time.Second)
		w.wants("redis:1 v0 Waiting")
		w.wait(time.Second)
		w.wants("redis:1 v0 Pulling")
		w.wait(time.Minute)
		if w.images.most != 1 {
			t.Errorf("%d at the same time", w.images.most)
		}
	})
}

// A NodeImage that is deleted takes its pulls with it; another one of the name begins again.
func TestNodeImageIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = takes(time.Minute)
		w.begin()
		w.spec(asks("nginx:1", 0))
		w.store.change(func(n *v1beta1.NodeImage) { n.DeletionTimestamp = ptr.To(metav1.Now()) })
		w.settle()
		if _, now := w.images.asked(); now != 0 {
			t.Errorf("%d pulls go on", now)
		}
		w.store.change(func(n *v1beta1.NodeImage) {
			n.DeletionTimestamp, n.UID, n.Status = nil, "u2", v1beta1.NodeImageStatus{}
		})
		w.wait(2 * time.Minute)
		w.wants("nginx:1 v0 Succeeded")
	})
}

// A tag that leaves and comes back is pulled again, also at the version that it had.
func TestTagComesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.begin()
		w.spec(asks("nginx:1", 0))
		w.wait(10 * time.Second)
		// Its end must not be remembered, not even until the next pass.
		w.store.set(func() { w.store.notify = func() {} })
		w.spec(leaves("nginx"))
		r.api.Requeue(r.request())
		w.settle()
		w.wants("")
		if n := len(r.jobs); n != 0 {
			t.Errorf("%d pulls are remembered", n)
		}
		w.store.watch(func() { r.api.Requeue(r.request()) })
		w.spec(asks("nginx:1", 0))
		w.wait(10 * time.Second)
		w.wants("nginx:1 v0 Succeeded")
		if n := len(w.images.pulled()); n != 2 {
			t.Errorf("%d pulls", n)
		}
	})
}

func TestMetrics(t *testing.T) {
	inWorld(t, func(w *world) {
		registry := prometheus.NewPedanticRegistry()
		w.options.Registerer = registry
		w.images.present["there:1"] = cri.Image{ID: "sha256:1", Tags: []string{"there:1"}}
		w.images.pull = func(ctx context.Context, c call) (string, error) {
			switch c.reference {
			case "broken:1":
				return "", errRegistry
			case "closed:1":
				return "", cri.ErrCredentials
			case "absent:1":
				return "", cri.ErrNotFound
			}
			return takes(3*time.Second)(ctx, c)
		}
		w.begin()
		w.spec(asks("nginx:1", 0), asks("there:1", 0, ifNotPresent), asks("broken:1", 0, limited(1)),
			asks("closed:1", 0, limited(0)), asks("absent:1", 0, limited(0)), asks("late:1", 0, limited(0), within(2)))
		w.wait(time.Minute)
		got := gathered(t, registry)
		want := []string{
			"filesystem_free_ratio 1", "filesystem_min_free_ratio 0",
			"pull_attempts_total failed 2", "pull_attempts_total not_found 1", "pull_attempts_total present 1",
			"pull_attempts_total pulled 1",
			"pull_attempts_total refused 1", "pull_attempts_total timeout 1", "pull_duration_seconds 1 in 3s",
			"pulls_running 0", "pulls_total Failed 4", "pulls_total Succeeded 2", "pulls_waiting 0",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if _, err := New(w.store.client(), "n1", w.images, w.options); err == nil {
			t.Error("the metrics are registered twice")
		}
	})
}

// gathered has a line for each metric.
func gathered(t *testing.T, registry *prometheus.Registry) (got []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			line := strings.TrimPrefix(f.GetName(), "kruise_daemon_image_")
			for _, l := range m.GetLabel() {
				line += " " + l.GetValue()
			}
			switch {
			case m.Histogram != nil:
				line += fmt.Sprintf(" %d in %vs", m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum())
			case m.Gauge != nil:
				line += fmt.Sprint(" ", m.Gauge.GetValue())
			default:
				line += fmt.Sprint(" ", m.Counter.GetValue())
			}
			got = append(got, line)
		}
	}
	return got
}

func TestNew(t *testing.T) {
	c := newStore().client()
	for why, try := range map[string]func() (*Reconciler, error){
		"no client":  func() (*Reconciler, error) { return New(nil, "n1", newImages(), Options{}) },
		"no node":    func() (*Reconciler, error) { return New(c, "", newImages(), Options{}) },
		"no runtime": func() (*Reconciler, error) { return New(c, "n1", nil, Options{}) },
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s: no error", why)
		}
	}
}

func TestMessages(t *testing.T) {
	if got := messageOf(errors.Join(errRegistry, cri.ErrNotFound, errRegistry)); got != errRegistry.Error()+"; not found" {
		t.Errorf("%q", got)
	}
	if got := cut(strings.Repeat("ä", maxMessage)); got != strings.Repeat("ä", maxMessage/2) {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-3:])
	}
	for id, want := range map[string]string{
		"sha256:1": "sha256:1", "docker.io/library/nginx@sha256:1": "sha256:1", "": "",
	} {
		if got := idOf(id); got != want {
			t.Errorf("%q is %q", id, got)
		}
	}
}

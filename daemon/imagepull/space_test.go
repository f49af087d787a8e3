package imagepull

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

// noRoomText is what a status says of a bound of 17 percent.
const noRoomText = "less than 17% of the image file system is free"

// disk has 1000 units.
type disk struct {
	mu sync.Mutex
	// used now, and at most.
	used, most int
}

func (d *disk) use(units int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used += units
	d.most = max(d.most, d.used)
}

func (d *disk) set(used int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = used
}

func (d *disk) space() ([]cri.Space, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []cri.Space{{Capacity: 1000, Available: uint64(max(1000-d.used, 0))}}, nil
}

// writes is a pull that writes a unit in each 100 ms. One that is cancelled leaves nothing.
func (d *disk) writes(units int) func(context.Context, call) (string, error) {
	return func(ctx context.Context, _ call) (string, error) {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for n := range units {
			select {
			case <-ticker.C:
				d.use(1)
			case <-ctx.Done():
				d.use(-n)
				return "", ctx.Err()
			}
		}
		return "sha256:1", nil
	}
}

// onDisk is a world whose pulls leave 17 percent of a disk free.
func onDisk(t *testing.T, used int, test func(w *world, d *disk)) {
	t.Helper()
	inWorld(t, func(w *world) {
		d := &disk{used: used}
		w.images.space, w.options.MinFreePercent = d.space, 17
		test(w, d)
	})
}

// Pulls of one namespace do not fill the disk of a node, whether it has many images or one that is too large.
func TestNamespaceDoesNotFillTheDisk(t *testing.T) {
	for why, test := range map[string]struct{ images, units, least int }{
		"many images":            {40, 30, 27},
		"one that never fits":    {1, 2000, 0},
		"several that never fit": {5, 2000, 0},
	} {
		t.Run(why, func(t *testing.T) {
			onDisk(t, 0, func(w *world, d *disk) {
				w.images.pull = d.writes(test.units)
				w.begin()
				var all []func(*v1beta1.NodeImage)
				for i := range test.images {
					all = append(all, asks(fmt.Sprintf("big:%d", i), 0, ownedBy("evil/job"), within(1<<30)))
				}
				w.spec(all...)
				w.wait(time.Hour)
				// What five pulls write between two looks at the disk may be beyond the bound.
				if d.most > 830+4*21 {
					t.Errorf("%d of 1000 units were used, 830 may be", d.most)
				}
				if s := w.store.stored().Status; int(s.Succeeded) < test.least {
					t.Errorf("%d images were pulled, and %d fit: %s", s.Succeeded, test.least, w.told())
				}
			})
		})
	}
}

// A full disk takes no pull. What the node has needs none, and the pulls that wait write their status once.
func TestPullsWaitForRoom(t *testing.T) {
	onDisk(t, 831, func(w *world, d *disk) {
		registry := prometheus.NewPedanticRegistry()
		w.options.Registerer = registry
		w.images.present["there:1"] = cri.Image{ID: "sha256:1", Tags: []string{"there:1"}}
		w.begin()
		w.spec(asks("there:1", 0, ifNotPresent), asks("nginx:1", 0, ifNotPresent), asks("redis:1", 0))
		w.wait(10 * time.Second)
		w.wants("nginx:1 v0 Pulling, redis:1 v0 Pulling, there:1 v0 Succeeded")
		written := w.store.written()
		w.wait(9 * time.Minute)
		for _, image := range []string{"nginx:1", "redis:1"} {
			if got, want := w.tag(image).Message, "waiting for attempt 1 of 4: "+noRoomText; got != want {
				t.Errorf("%s: message %q, want %q", image, got, want)
			}
		}
		if n := w.store.written() - written; n != 0 {
			t.Errorf("%d writes while nothing changes", n)
		}
		if asked, _ := w.images.asked(); asked > 2 || len(w.images.pulled()) > 0 {
			t.Errorf("the runtime was asked %d times, and pulled %v", asked, w.images.pulled())
		}
		want := []string{
			"n1: Normal PullImageSucceed Image there:1 is there, after 0s",
			"n1: Warning PullImageNoRoom Pulls wait, nginx:1 among them: " + noRoomText + " (16% now)",
		}
		events := w.events.take()
		for i := range events { // either attempt may be the first to find no room
			events[i] = strings.Replace(events[i], "redis:1 among", "nginx:1 among", 1)
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(events))); diff != "" {
			t.Error(diff)
		}
		wantMetrics := []string{
			"filesystem_free_ratio 0.16", "filesystem_min_free_ratio 0.17", "pull_attempts_total no_room 2",
			"pull_attempts_total present 1",
		}
		if diff := cmp.Diff(wantMetrics, gathered(t, registry)[:4]); diff != "" {
			t.Error(diff)
		}
		d.use(-200)
		w.wait(31 * time.Second)
		w.wants("nginx:1 v0 Succeeded, redis:1 v0 Succeeded, there:1 v0 Succeeded")
		if m := w.tag("nginx:1").Message; m != "" {
			t.Errorf("message %q at the end", m)
		}
	})
}

// A disk that stays full ends all pulls: as long as an attempt may take is an attempt, and the failure names the bound.
func TestDiskStaysFull(t *testing.T) {
	for why, test := range map[string]struct {
		limits []func(*v1beta1.ImageTagSpec)
		after  time.Duration
		want   string
	}{
		"attempts are used up": {
			[]func(*v1beta1.ImageTagSpec){limited(1), within(60)}, 2*time.Minute + time.Second, noRoomText,
		},
		"the deadline passes": {
			[]func(*v1beta1.ImageTagSpec){before(300)}, 5 * time.Minute, "pulling exceeds the activeDeadlineSeconds",
		},
		"the default limits": {nil, 40*time.Minute + time.Second, noRoomText},
	} {
		t.Run(why, func(t *testing.T) {
			onDisk(t, 1000, func(w *world, _ *disk) {
				w.begin()
				w.spec(asks("nginx:1", 0, test.limits...))
				w.wait(test.after - 5*time.Second)
				w.wants("nginx:1 v0 Pulling")
				w.wait(10 * time.Second)
				if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhaseFailed || s.Message != test.want {
					t.Errorf("%+v", s)
				}
				if n := w.store.written(); n > 8 {
					t.Errorf("%d writes", n)
				}
				if n := len(w.images.pulled()); n != 0 {
					t.Errorf("%d pulls", n)
				}
			})
		})
	}
}

// A pull that crosses the bound is stopped within seconds, which is an attempt that failed. It goes on when there is
// room.
func TestPullIsStoppedAtTheBound(t *testing.T) {
	onDisk(t, 700, func(w *world, d *disk) {
		w.images.pull = d.writes(100)
		w.begin()
		w.spec(asks("nginx:1", 0))
		w.wait(2 * time.Second)
		d.use(200) // of a pod
		w.wait(3 * time.Second)
		if _, now := w.images.asked(); now != 0 {
			t.Error("the pull goes on")
		}
		if got, want := w.tag("nginx:1").Message, "waiting for attempt 2 of 4: "+noRoomText; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		w.wait(5 * time.Minute)
		if n := len(w.images.pulled()); n != 1 {
			t.Errorf("%d pulls", n)
		}
		d.use(-800)
		w.wait(time.Minute)
		w.wants("nginx:1 v0 Succeeded")
	})
}

// A pull that never fits fails after its attempts, and the failure says why it was stopped.
func TestPullNeverFits(t *testing.T) {
	onDisk(t, 800, func(w *world, d *disk) {
		w.images.pull = d.writes(100)
		w.begin()
		w.spec(asks("nginx:1", 0, limited(2)))
		w.wait(time.Minute)
		want := `pull image "nginx:1": stopped: ` + noRoomText
		if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhaseFailed || s.Message != want {
			t.Errorf("%+v", s)
		}
		if n := len(w.images.pulled()); n != 3 {
			t.Errorf("%d pulls", n)
		}
	})
}

// Close to the bound each namespace pulls one image at a time, so that none takes the last room alone.
func TestRoomIsScarce(t *testing.T) {
	onDisk(t, 790, func(w *world, d *disk) {
		w.images.pull = takes(time.Minute)
		w.begin()
		w.spec(asks("a.io/big:1", 0, ownedBy("evil/job")), asks("b.io/big:1", 0, ownedBy("evil/job")),
			asks("nginx:1", 0, ownedBy("shop/job")))
		w.wait(time.Second)
		if _, now := w.images.asked(); now != 2 || strings.Count(strings.Join(w.images.pulled(), " "), "big") != 1 {
			t.Errorf("pulls under way: %v", w.images.pulled())
		}
		d.use(-500)
		w.wait(time.Minute)
		if _, now := w.images.asked(); now != 1 || len(w.images.pulled()) != 3 {
			t.Errorf("pulls under way: %v", w.images.pulled())
		}
	})
}

// Where the disk is not visible pulls have no bound, and a line of log and a metric say so.
func TestDiskIsNotVisible(t *testing.T) {
	for why, space := range map[string]func() ([]cri.Space, error){
		"an error": func() ([]cri.Space, error) { return nil, fs.ErrNotExist },
		"nothing":  func() ([]cri.Space, error) { return nil, nil },
		"a panic":  func() ([]cri.Space, error) { panic("an odd runtime") },
	} {
		t.Run(why, func(t *testing.T) {
			inWorld(t, func(w *world) {
				registry := prometheus.NewPedanticRegistry()
				w.options.Registerer, w.options.MinFreePercent, w.images.space = registry, 17, space
				w.images.pull = takes(10 * time.Second)
				r := w.begin()
				w.spec(asks("nginx:1", 0))
				w.wait(11 * time.Second)
				w.wants("nginx:1 v0 Succeeded")
				if got := gathered(t, registry)[:2]; !cmp.Equal(got, []string{
					"filesystem_free_ratio NaN", "filesystem_min_free_ratio 0",
				}) {
					t.Errorf("metrics %q", got)
				}
				var lines []string
				logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				again := newSpace(r.images, r.options)
				for range 3 {
					again.look(log.IntoContext(t.Context(), logger))
					w.wait(time.Minute)
				}
				if len(lines) != 1 || !strings.Contains(lines[0], "have no bound") {
					t.Errorf("logged %q", lines)
				}
			})
		})
	}
}

func TestBoundIsAShare(t *testing.T) {
	for _, percent := range []int{-1, 100} {
		if _, err := New(newStore().client(), "n1", newImages(), Options{MinFreePercent: percent}); err == nil {
			t.Errorf("%d%% is taken", percent)
		}
	}
}

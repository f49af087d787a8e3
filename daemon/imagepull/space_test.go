package imagepull

import (
	"context"
	"fmt"
	"io/fs"
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
const noRoomText = "no room for pulls: less than 17% of the image file system is free"

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
				// What five pulls write while a measurement holds, and until the next look, may be beyond the bound.
				if d.most > 830+2*4*21 {
					t.Errorf("%d of 1000 units were used, 830 may be", d.most)
				}
				if s := w.store.stored().Status; int(s.Succeeded) < test.least {
					t.Errorf("%d images were pulled, and %d fit: %s", s.Succeeded, test.least, w.told())
				}
			})
		})
	}
}

// A full disk takes no pull, which is an attempt that failed. What the node has needs no room.
func TestDiskIsFull(t *testing.T) {
	onDisk(t, 831, func(w *world, d *disk) {
		registry := prometheus.NewPedanticRegistry()
		w.options.Registerer = registry
		w.images.present["there:1"] = cri.Image{ID: "sha256:1", Tags: []string{"there:1"}}
		w.begin()
		w.spec(asks("there:1", 0, ifNotPresent), asks("nginx:1", 0, limited(0)), asks("redis:1", 0))
		w.wait(2 * time.Second)
		w.wants("nginx:1 v0 Failed, redis:1 v0 Pulling, there:1 v0 Succeeded")
		want := `attempt 2 of 4 failed: pull image "redis:1": ` + noRoomText
		if got := w.tag("redis:1").Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		wantMetrics := []string{
			"filesystem_free_ratio 0.16", "filesystem_min_free_ratio 0.17", "pull_attempts_total no_room 3",
			"pull_attempts_total present 1",
		}
		if diff := cmp.Diff(wantMetrics, gathered(t, registry)[:4]); diff != "" {
			t.Error(diff)
		}
		if n := len(w.images.pulled()); n != 0 {
			t.Errorf("%d pulls", n)
		}
		d.use(-200)
		w.wait(31 * time.Second)
		w.wants("nginx:1 v0 Failed, redis:1 v0 Succeeded, there:1 v0 Succeeded")
	})
}

// Of several file systems, and of bytes and inodes, the one with the least free share counts.
func TestScarcest(t *testing.T) {
	for want, found := range map[string][]cri.Space{
		"":                                {{Capacity: 1000, Available: 170}, {}},
		"image file system":               {{Capacity: 1000, Available: 900}, {Capacity: 1 << 60, Available: 1 << 57}},
		"inodes of the image file system": {{Capacity: 1000, Available: 160, Inodes: 1000, FreeInodes: 9}},
	} {
		images := newImages()
		images.space = func() ([]cri.Space, error) { return found, nil }
		s := &space{images: images, least: 17, now: time.Now}
		err := s.check(t.Context())
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), "17% of the "+want+" is free") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A pull that never fits fails after its attempts, and the failure says why it was stopped.
func TestPullNeverFits(t *testing.T) {
	onDisk(t, 800, func(w *world, d *disk) {
		w.images.pull = d.writes(100)
		w.begin()
		w.spec(asks("nginx:1", 0, limited(2)))
		w.wait(time.Minute)
		if s := w.tag("nginx:1"); s.Phase != v1beta1.ImagePhaseFailed || !strings.Contains(s.Message, noRoomText) {
			t.Errorf("%+v", s)
		}
		if n := len(w.images.pulled()); n == 0 || n > 3 || d.used != 800 {
			t.Errorf("%d pulls, of which %d units are left", n, d.used-800)
		}
	})
}

// Where the disk is not visible pulls have no bound, and a line of log and a metric say so.
func TestDiskIsNotVisible(t *testing.T) {
	for why, space := range map[string]func() ([]cri.Space, error){
		"an error": func() ([]cri.Space, error) { return nil, fs.ErrNotExist },
		"nothing":  func() ([]cri.Space, error) { return nil, nil },
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
				again := another(r)
				for range 3 {
					if err := again.check(log.IntoContext(t.Context(), logger)); err != nil {
						t.Error(err)
					}
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

// another looks at the disk of a reconciler, too.
func another(r *Reconciler) *space {
	return &space{images: r.images, least: r.options.MinFreePercent, now: r.api.Now}
}

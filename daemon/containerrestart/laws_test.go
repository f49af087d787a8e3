package containerrestart

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// The same cases each time, unless others are asked for: go test ./daemon/containerrestart -seed=1000. Goroutines take
// turns as they like, so that a case may need several runs to fail again.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 40, "how many random cases to play")
)

// play lets requests run to their end in a world, and fails where they do not come to one.
func play(t *testing.T, w *world, ask func(*world)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.mu.Lock()
	w.birth(ctx)
	w.mu.Unlock()
	living := make(chan struct{})
	go func() {
		defer close(living)
		w.live(ctx)
	}()
	ask(w)
	for range 1200 {
		time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
		if w.ended() {
			break
		}
	}
	ended := w.ended()
	w.mu.Lock()
	w.risk = 0
	w.now.cancel()
	last := w.now
	w.mu.Unlock()
	cancel()
	<-living
	last.done.Wait()
	time.Sleep(time.Minute) //nolint:forbidigo // for what is still under way in the time of the bubble
	if !ended {
		t.Fatalf("the requests do not end\n%s", w.text())
	}
}

func someWays(w *world) {
	for _, name := range []string{"app", "log", "mesh"} {
		w.ways[name] = way{hook: w.user.Intn(5), slow: w.user.Intn(4), unstoppable: w.user.Intn(8) == 0}
	}
}

// some changes what is asked for at random.
func some(w *world) func(*request) {
	strategy := &v1beta1.ContainerRecreateRequestStrategy{
		OrderedRecreate: w.user.Intn(3) == 0, ForceRecreate: w.user.Intn(3) == 0, MinStartedSeconds: int32(w.user.Intn(3)),
		FailurePolicy: v1beta1.ContainerRecreateRequestFailurePolicyIgnore,
	}
	if w.user.Intn(3) == 0 {
		strategy.TerminationGracePeriodSeconds = ptr.To(int64(w.user.Intn(4)))
	}
	second := []string{"log", "mesh"}[w.user.Intn(2)]
	return func(r *request) { r.Spec.Strategy, r.Spec.Containers[1].Name = strategy, second }
}

// TestDeathChangesNothing plays each world twice: calmly, and with daemons that die, and calls that fail, between any
// two things that they do.
func TestDeathChangesNothing(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	deaths, failures := 0, 0
	for i := range *worlds {
		var calm map[string]string
		for _, risk := range []int{0, 12} {
			bubbletest.Test(t, func(t *testing.T) {
				w := newWorld(*seed+i, Options{})
				someWays(w)
				names := map[string]int{}
				change := some(w)
				count := func(r *request) {
					change(r)
					for _, c := range r.Spec.Containers {
						names[c.Name]++
					}
				}
				w.risk = risk
				play(t, w, func(w *world) { w.create("again", count) })
				w.mu.Lock()
				defer w.mu.Unlock()
				ends := map[string]string{}
				for name, r := range w.stored {
					ends[name] = told(r)
				}
				for name, n := range w.stops {
					if n > names[name] {
						t.Errorf("-seed=%d: container %s was stopped %d times for %d requests", *seed+i, name, n, names[name])
					}
				}
				for name, n := range w.hooks {
					if w.ways[name].unstoppable {
						continue // the try is unknown
					}
					if n > names[name]+w.deaths+w.failures {
						t.Errorf("-seed=%d: the hook of %s ran %d times in %d deaths", *seed+i, name, n, w.deaths)
					}
				}
				if risk == 0 {
					calm = ends
				}
				if diff := cmp.Diff(calm, ends); diff != "" {
					t.Errorf("-seed=%d: with deaths it ends otherwise (-calm +wild):\n%s", *seed+i, diff)
				}
				deaths, failures = deaths+w.deaths, failures+w.failures
				if t.Failed() {
					t.Fatalf("%s", strings.Join(w.lines, "\n"))
				}
			})
			if t.Failed() {
				return
			}
		}
	}
	if int64(deaths) < *worlds || int64(failures) < *worlds {
		t.Errorf("only %d deaths and %d failures, so that they are hardly tried", deaths, failures)
	}
	t.Logf("%d deaths, %d failures", deaths, failures)
}

// TestLaws has several requests for one pod come at any time.
func TestLaws(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	for i := range *worlds {
		bubbletest.Test(t, func(t *testing.T) {
			w := newWorld(*seed+i, Options{})
			someWays(w)
			for name, way := range w.ways {
				way.unstoppable = false
				w.ways[name] = way
			}
			w.risk = 20
			asked := map[string]int{}
			play(t, w, func(w *world) {
				for n := range 1 + w.user.Intn(4) {
					change := some(w)
					w.create(fmt.Sprintf("crr-%d", n), func(r *request) {
						change(r)
						for _, c := range r.Spec.Containers {
							asked[c.Name]++
						}
					})
					time.Sleep(time.Duration(w.user.Intn(15000)) * time.Millisecond) //nolint:forbidigo // the time of the bubble
				}
			})
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, name := range slices.Sorted(maps.Keys(w.stored)) {
				r := w.stored[name]
				if r.Status.Message != "" {
					t.Errorf("%s ended with %q", name, r.Status.Message)
				}
				for n, s := range r.Status.ContainerRecreateStates {
					if s.Phase != v1beta1.ContainerRecreateRequestSucceeded {
						t.Errorf("%s: %s is %s %s", name, s.Name, s.Phase, s.Message)
					}
					if is := w.ran[w.newest(s.Name)].ID; engine+"://"+is == r.Spec.Containers[n].StatusContext.ContainerID {
						t.Errorf("%s: %s succeeded, and never restarted", name, s.Name)
					}
				}
			}
			for name, n := range w.stops {
				if n > asked[name] {
					t.Errorf("container %s was stopped %d times for %d requests", name, n, asked[name])
				}
			}
			if t.Failed() {
				t.Fatalf("-seed=%d\n%s", *seed+i, strings.Join(w.lines, "\n"))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestWrites counts what one request costs, and what it costs afterwards: nothing.
func TestWrites(t *testing.T) {
	tests := map[string]struct {
		change  func(*request)
		options Options
		writes  int
	}{
		"one container: begun, stopped, ended": {
			change: func(r *request) { r.Spec.Containers = r.Spec.Containers[:1] },
			writes: 3,
		},
		"two that stop one after the other: begun, each stopped, the first up, ended": {
			writes: 5,
		},
		"two in order: begun, each stopped, the first up, ended": {
			change: func(r *request) { r.Spec.Strategy.OrderedRecreate = true },
			writes: 5,
		},
		"one by force: what is being stopped is noted with the beginning": {
			change: func(r *request) {
				r.Spec.Strategy.ForceRecreate = true
				r.Spec.Containers = r.Spec.Containers[:1]
			},
			writes: 3,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubbletest.Test(t, func(t *testing.T) {
				w := newWorld(1, tt.options)
				w.lag = 0
				for name := range map[string]int{"app": 1, "log": 2} {
					w.ways[name] = way{hook: 2, slow: 3}
				}
				var calls, all int
				play(t, w, func(w *world) {
					w.create("again", tt.change)
					for range 60 {
						time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
					}
					w.mu.Lock()
					calls, all = w.calls, w.writes["again"]
					w.mu.Unlock()
					time.Sleep(time.Hour) //nolint:forbidigo // the time of the bubble
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.calls != calls || w.writes["again"] != all {
						t.Errorf("%d calls of the runtime and %d writes after the end", w.calls-calls, w.writes["again"]-all)
					}
				})
				// The manager may write in the very moment in which the daemon does.
				if all != tt.writes || w.conflicts > 1 {
					t.Errorf("%d writes, want %d; %d conflicts\n%s", all, tt.writes, w.conflicts, w.text())
				}
				t.Logf("%d calls of the runtime", calls)
			})
		})
	}
}

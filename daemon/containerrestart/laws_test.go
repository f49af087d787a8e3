package containerrestart

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// The same cases each time, unless others are asked for: go test ./daemon/containerrestart -seed=1000. Goroutines take
// turns as they like, so that a case may need several runs to fail again.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 40, "how many random cases to play")
)

// play lets requests run to their end in a world, and fails where they do not come to one.
func play(t *testing.T, w *world, ask func()) {
	t.Helper()
	ended := false
	w.Play(t, func() {
		ask()
		for n := 0; n < 1200 && !ended; n++ {
			time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
			ended = w.ended()
		}
	}, w.manage)
	if !ended {
		t.Fatalf("the requests do not end\n%s", w.Text())
	}
}

// some changes what is asked for at random. It counts the containers that are named.
func some(w *world, named map[string]int) func(*request) {
	strategy := &v1beta1.ContainerRecreateRequestStrategy{
		OrderedRecreate: w.user.Intn(3) == 0, ForceRecreate: w.user.Intn(3) == 0, MinStartedSeconds: int32(w.user.Intn(3)),
		FailurePolicy: v1beta1.ContainerRecreateRequestFailurePolicyIgnore,
	}
	if w.user.Intn(3) == 0 {
		strategy.TerminationGracePeriodSeconds = ptr.To(int64(w.user.Intn(4)))
	}
	if w.user.Intn(3) == 0 {
		strategy.UnreadyGracePeriodSeconds = ptr.To(int64(w.user.Intn(4)))
	}
	second := []string{"log", "mesh"}[w.user.Intn(2)]
	named["app"]++
	named[second]++
	return func(r *request) { r.Spec.Strategy, r.Spec.Containers[1].Name = strategy, second }
}

// check has what holds in each world: no container was stopped more often than it was named.
func check(t *testing.T, w *world, named map[string]int) {
	t.Helper()
	stops := map[string]int{}
	for _, s := range w.Node.Stops() {
		stops[s.Name]++
	}
	for name, n := range stops {
		if n > named[name] {
			t.Errorf("container %s was stopped %d times for %d requests", name, n, named[name])
		}
	}
	for _, r := range w.requests() {
		if len(r.Finalizers) > 0 {
			t.Errorf("%s has the finalizers %v", r.Name, r.Finalizers)
		}
	}
	if c := lifecycle.ConditionOf(w.pod(), kruise.KruisePodReadyConditionType); c.Status != corev1.ConditionTrue {
		t.Errorf("the pod is never put back into traffic: %s", c.Message)
	}
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
				w, named := newWorld(*seed+i, nil), map[string]int{}
				change := some(w, named)
				w.Dare(risk)
				play(t, w, func() { w.create("again", change) })
				check(t, w, named)
				died, failed := w.Mishaps()
				for name, n := range w.hooks {
					if !w.ways[name].unstoppable && n > named[name]+died+failed { // else the try is unknown
						t.Errorf("the hook of %s ran %d times in %d deaths", name, n, died)
					}
				}
				ends := map[string]string{}
				for _, r := range w.requests() {
					ends[r.Name] = told(r)
				}
				if risk == 0 {
					calm = ends
				}
				if diff := cmp.Diff(calm, ends); diff != "" {
					t.Errorf("with deaths it ends otherwise (-calm +wild):\n%s", diff)
				}
				deaths, failures = deaths+died, failures+failed
				if t.Failed() {
					t.Fatalf("-seed=%d\n%s", *seed+i, w.Text())
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

// TestLaws has several requests for one pod come at any time. All succeed.
func TestLaws(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	for i := range *worlds {
		bubbletest.Test(t, func(t *testing.T) {
			w, named := newWorld(*seed+i, nil), map[string]int{}
			for name, way := range w.ways {
				way.unstoppable = false
				w.ways[name] = way
			}
			w.Dare(20)
			play(t, w, func() {
				for n := range 1 + w.user.Intn(4) {
					w.create(fmt.Sprintf("crr-%d", n), some(w, named))
					time.Sleep(time.Duration(w.user.Intn(15000)) * time.Millisecond) //nolint:forbidigo // the time of the bubble
				}
			})
			check(t, w, named)
			is := map[string]string{}
			for _, s := range w.pod().Status.ContainerStatuses {
				is[s.Name] = s.ContainerID
			}
			for _, r := range w.requests() {
				if r.Status.Message != "" {
					t.Errorf("%s ended with %q", r.Name, r.Status.Message)
				}
				for n, s := range r.Status.ContainerRecreateStates {
					if s.Phase != v1beta1.ContainerRecreateRequestSucceeded ||
						is[s.Name] == r.Spec.Containers[n].StatusContext.ContainerID {
						t.Errorf("%s: %s is %s %s, and runs as %s", r.Name, s.Name, s.Phase, s.Message, is[s.Name])
					}
				}
			}
			if t.Failed() {
				t.Fatalf("-seed=%d\n%s", *seed+i, w.Text())
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestWrites counts what one request costs, and what it costs afterwards: nothing.
func TestWrites(t *testing.T) {
	one := func(r *request) { r.Spec.Containers = r.Spec.Containers[:1] }
	tests := map[string]struct {
		change func(*request)
		writes int
	}{
		"one container: begun, stopped, ended":                                        {one, 3},
		"two that stop one after the other: begun, each stopped, the first up, ended": {nil, 5},
		"two in order: begun, each stopped, the first up, ended": {
			func(r *request) { r.Spec.Strategy.OrderedRecreate = true }, 5,
		},
		"one by force: what is being stopped is noted with the beginning": {func(r *request) {
			one(r)
			r.Spec.Strategy.ForceRecreate = true
		}, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubbletest.Test(t, func(t *testing.T) {
				busy := way{hook: 2 * time.Second, slow: 3 * time.Second}
				w := newWorld(1, map[string]way{"app": busy, "log": busy})
				w.Lag = 0
				play(t, w, func() {
					time.Sleep(10 * time.Second) //nolint:forbidigo // the time of the bubble, in which the containers start
					w.create("again", tt.change)
					time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
					calls := w.Node.Calls()
					// The manager may write in the very moment in which the daemon does.
					if n, conflicts := w.Writes("again"); n != tt.writes || conflicts > 1 {
						t.Errorf("%d writes, want %d; %d conflicts\n%s", n, tt.writes, conflicts, w.Text())
					}
					time.Sleep(time.Hour) //nolint:forbidigo // the time of the bubble
					if n, _ := w.Writes("again"); n != tt.writes || w.Node.Calls() != calls {
						t.Errorf("%d calls of the runtime and %d writes after the end", w.Node.Calls()-calls, n-tt.writes)
					}
				})
			})
		})
	}
}

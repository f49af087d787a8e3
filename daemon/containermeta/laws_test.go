package containermeta

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/bubbletest"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

// The same cases each time, unless others are asked for: go test ./daemon/containermeta -seed=1000. Goroutines take
// turns as they like, so that a case may need several runs to fail again.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 40, "how many random cases to play")
)

// await waits for an update to be complete.
func (w *world) await(t *testing.T, what string) {
	t.Helper()
	for range 3600 {
		if w.complete() {
			return
		}
		time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
	}
	t.Fatalf("%s never completes\n%s", what, w.Text())
}

func ready(is corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kruise.InPlaceUpdateReady
		}), corev1.PodCondition{Type: kruise.InPlaceUpdateReady, Status: is})
	}
}

// TestOnce changes an annotation in place some times, with daemons that die, and calls that fail, between any two
// things that they do. Each time, each container that is fed by it restarts once, and no other does.
func TestOnce(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	deaths, failures := 0, 0
	for i := range *worlds {
		bubbletest.Test(t, func(t *testing.T) {
			w := newWorld(*seed+i, map[string]nodetest.Way{
				"app": {Slow: time.Second, Stop: func(context.Context) error {
					time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
					return nil
				}},
			})
			w.Play(t, func() {
				w.change(ready(corev1.ConditionTrue))
				w.nudge()
				w.await(t, "the first description")
				w.Dare(12)
				for n := range 3 {
					value := func(pod *corev1.Pod) { pod.Annotations["conf"] = fmt.Sprint(n + 1) }
					if n%2 == 0 {
						w.change(ready(corev1.ConditionFalse))
						time.Sleep(time.Duration(n) * 100 * time.Millisecond) //nolint:forbidigo // the time of the bubble
						w.change(value)
					} else {
						w.change(value)
						w.change(ready(corev1.ConditionFalse))
					}
					w.await(t, fmt.Sprintf("update %d", n+1))
					w.change(ready(corev1.ConditionTrue))
				}
			})
			stops := map[string]int{}
			for _, s := range w.Node.Stops() {
				stops[s.Name]++
			}
			if stops["app"] != 3 || stops["log"] != 3 || stops["mesh"] != 0 {
				t.Errorf("containers were stopped %v times in 3 updates\n%s", stops, w.Text())
			}
			died, failed := w.Mishaps()
			deaths, failures = deaths+died, failures+failed
		})
		if t.Failed() {
			t.Fatalf("-seed=%d", *seed+i)
		}
	}
	if int64(deaths) < *worlds || int64(failures) < *worlds {
		t.Errorf("only %d deaths and %d failures, so that they are hardly tried", deaths, failures)
	}
	t.Logf("%d deaths, %d failures", deaths, failures)
}

// nudge has a container end: daemons leave alone what is there, and is not described, when they start.
func (w *world) nudge() {
	w.Node.End(strings.TrimPrefix(w.pod().Status.ContainerStatuses[2].ContainerID, nodetest.Engine+"://"), 0)
}

// TestCosts counts what an update costs in a calm world, and what comes afterwards: nothing.
func TestCosts(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		w := newWorld(1, nil)
		w.Play(t, func() {
			w.nudge()
			w.await(t, "the first description")
			w.change(ready(corev1.ConditionFalse))
			before := w.writes()
			w.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = "1" })
			w.await(t, "the update")
			w.change(ready(corev1.ConditionTrue))
			time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
			writes := w.writes() - before
			if writes < 1 || writes > 2 { // two containers, which the kubelet may tell of at once
				t.Errorf("%d writes\n%s", writes, w.Text())
			}
			if n := w.Node.CallsOf("Exec env"); n > 5 {
				t.Errorf("environments were read %d times", n)
			}
			calls := w.Node.Calls()
			for range 10 {
				w.change(func(pod *corev1.Pod) { pod.Labels = map[string]string{"other": time.Now().String()} })
				time.Sleep(time.Hour) //nolint:forbidigo // the time of the bubble
			}
			if w.writes() != before+writes || w.Node.Calls() != calls {
				t.Errorf("%d writes and %d calls of the runtime for nothing", w.writes()-before-writes, w.Node.Calls()-calls)
			}
		})
	})
}

package containerrestart_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// The same cases each time, unless others are asked for: go test ./containerrestart -seed=1000000. A failure names the
// case.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 200, "how many random cases to play")
)

func (w *world) once(in int) bool { return w.Intn(in) == 0 }

// request changes what is asked for at random.
func (w *world) request(ends bool) func(*request) {
	return func(r *request) {
		r.Spec.Strategy = &strategy{OrderedRecreate: w.once(3), ForceRecreate: w.once(3), MinStartedSeconds: int32(w.Intn(3))}
		if w.once(2) {
			r.Spec.Strategy.FailurePolicy = ignore
		}
		if w.once(3) {
			r.Spec.Strategy.UnreadyGracePeriodSeconds = ptr.To(int64(w.Intn(4)))
		}
		if w.once(3) {
			r.Spec.Containers[1].Name = "mesh"
		}
		if w.once(4) {
			r.Spec.Containers = r.Spec.Containers[:1]
		}
		if w.once(4) || ends {
			r.Spec.ActiveDeadlineSeconds = ptr.To(int64(3 + w.Intn(40)))
		}
		if w.once(4) {
			r.Spec.TTLSecondsAfterFinished = ptr.To(int32(w.Intn(20)))
		}
	}
}

func (w *world) someWays() {
	for _, name := range []string{"app", "log", "mesh"} {
		w.ways[name] = way{
			unstoppable: w.once(8), crashing: w.once(8), neverReady: w.once(8), hook: w.Intn(6), slow: w.Intn(4),
		}
	}
}

// TestLaws lets anything happen to several requests for one pod, and then nothing more.
func TestLaws(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	reached := map[string]int{}
	for i := range *worlds {
		w := newWorld(*seed + i)
		w.someWays()
		abandoned := w.once(5)
		for tick := range 60 {
			w.noDaemon = abandoned && tick > 15
			if tick < 30 && w.once(8) {
				w.create(fmt.Sprintf("crr-%d", tick),
					w.request(w.ways["app"].neverReady || w.ways["log"].neverReady || w.ways["mesh"].neverReady))
			}
			w.tick()
			w.mishap()
			for range w.Intn(3) {
				w.manage()
			}
			for range w.Intn(3) {
				w.serve(w.once(2))
			}
		}
		for range 1200 {
			w.tick()
			w.manage()
			w.serve(true)
			if w.atRest() {
				break
			}
		}
		w.look(reached)
		if w.problem != "" {
			t.Fatalf("-seed=%d: %s\n%s", *seed+i, w.problem, w.text())
		}
	}
	t.Log(reached)
	for _, what := range []string{
		"", "pod has gone", "daemon has not responded for a long time", "recreating has exceeded the activeDeadlineSeconds",
		"Succeeded", "Failed", "killed",
	} {
		if reached[what] < 10 {
			t.Errorf("%q was reached only %d times, so that it is hardly tried", what, reached[what])
		}
	}
}

// atRest says whether all requests have ended, or none will.
func (w *world) atRest() bool {
	for _, r := range w.stored {
		if r.Labels[activeLabel] != "" && (!w.noDaemon || w.now.Before(at(300))) {
			return false
		}
	}
	return len(w.kills) == 0
}

// mishap is what happens unplanned.
func (w *world) mishap() {
	switch w.Intn(60) {
	case 0, 1, 2:
		w.die()
	case 3:
		for i := range w.runtime {
			if w.once(2) {
				w.runtime[i].State = "Exited"
			}
		}
	case 4:
		for _, r := range w.requests(w.stored) {
			w.delete(r.Name)
			break
		}
	case 5:
		if w.once(8) && w.pod != nil {
			w.say("user", "deletes the pod")
			w.pod = w.pod.DeepCopy()
			w.pod.DeletionTimestamp = ptr.To(stamp(w.now.Sub(at(0)).Seconds()))
		}
	}
}

// look says what is wrong with a world in which nothing happens any more.
func (w *world) look(reached map[string]int) {
	for _, r := range w.stored {
		switch {
		case r.DeletionTimestamp != nil:
			w.fail("%s is never deleted", r.Name)
		case r.Status.Phase != completed:
			if w.noDaemon && r.Status.Phase == recreating || w.noDaemon && r.Status.Phase == pending {
				continue // only a deadline ends what a daemon began
			}
			w.fail("%s never ends: %s", r.Name, text(r.Status))
		case r.Labels[activeLabel] != "" || len(r.Finalizers) > 0:
			w.fail("%s is never cleaned up", r.Name)
		}
		reached[r.Status.Message]++
		for i, st := range r.Status.ContainerRecreateStates {
			reached[string(st.Phase)]++
			if st.IsKilled {
				reached["killed"]++
			}
			if newest := w.container(st.Name); st.Phase == succeeded &&
				newest == r.Spec.Containers[i].StatusContext.ContainerID {
				w.fail("%s of %s succeeded, and never restarted", st.Name, r.Name)
			}
		}
	}
	if w.pod.DeletionTimestamp == nil && !w.noDaemon {
		if c := lifecycle.ConditionOf(w.pod, kruise.KruisePodReadyConditionType); c.Status != corev1.ConditionTrue {
			w.fail("the pod is never put back: %s", c.Message)
		}
	}
}

func (w *world) container(name string) string {
	for _, c := range w.runtime {
		if c.Name == name {
			return c.ID
		}
	}
	return ""
}

// TestDeathChangesNothing compares the end of a request with and without daemons that die, and see late.
func TestDeathChangesNothing(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	deaths := 0
	for i := range *worlds {
		end := func(mortal bool) (string, string) {
			w := newWorld(*seed + i)
			w.someWays()
			for name, way := range w.ways {
				way.neverReady = false
				w.ways[name] = way
			}
			w.create("again", w.request(false), func(r *request) {
				r.Spec.ActiveDeadlineSeconds, r.Spec.TTLSecondsAfterFinished = nil, nil
				if !r.Spec.Strategy.OrderedRecreate {
					// Else what becomes of the others depends on how far they are when the first fails.
					r.Spec.Strategy.FailurePolicy = ignore
				}
			})
			for range 400 {
				w.tick()
				w.manage()
				if mortal && w.once(6) && w.now.Before(at(60)) {
					w.die()
					deaths++
				}
				w.serve(!mortal || w.once(2) || w.now.After(at(60)))
				if w.atRest() && w.now.After(at(20)) {
					break
				}
			}
			if w.problem != "" {
				t.Fatalf("-seed=%d: %s\n%s", *seed+i, w.problem, w.text())
			}
			s := w.stored["again"].Status
			s.CompletionTime, s.Conditions, s.ContainerStatusSnapshot = nil, nil, nil
			told := text(s)
			for n := range 20 { // how often one crashed depends on the time of the look
				told = strings.ReplaceAll(told, fmt.Sprintf("ended %d times", n), "ended")
			}
			return told, w.text()
		}
		want, calm := end(false)
		got, wild := end(true)
		if want != got {
			t.Fatalf("-seed=%d: it ends as %s, and without deaths as %s\n%s\n%s", *seed+i, got, want, wild, calm)
		}
		if !strings.Contains(want, `"Completed"`) {
			t.Fatalf("-seed=%d: it never ends: %s\n%s", *seed+i, want, calm)
		}
	}
	if int64(deaths) < *worlds {
		t.Errorf("only %d deaths", deaths)
	}
}

package launch_test

import (
	"flag"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/launch"
)

// The same cases each time, unless others are asked for: go test ./launch -seed=1000000. A failure names the case.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 500, "how many random cases to play")
)

// TestLaws lets anything happen to pods of one name, and then nothing more: all containers are up in the end.
func TestLaws(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	marked := 0
	for i := range *worlds {
		w := newWorld(t, *seed+i)
		w.say("-seed=%d", *seed+i)
		for range 40 {
			w.controller() // sees a new pod before the kubelet does
			w.kubelet(false)
			w.mishap()
		}
		for range 30 {
			w.controller()
			w.kubelet(true)
		}
		if len(w.levels) == 0 {
			continue
		}
		for _, s := range w.pod.Status.ContainerStatuses {
			if !s.Ready {
				w.fail("-seed=%d: %s never gets ready", *seed+i, s.Name)
			}
		}
		writes := w.writes
		for range 5 {
			w.controller()
			w.kubelet(true)
		}
		if w.writes != writes {
			w.fail("-seed=%d: it writes when all is done", *seed+i)
		}
		if w.pod.Annotations[completedKey] == "true" {
			marked++
		}
	}
	if marked < int(*worlds)/4 {
		t.Errorf("only %d pods were complete, so that little was tried", marked)
	}
}

// TestCost counts what a pod costs that nothing happens to: a write for each priority, and the mark.
func TestCost(t *testing.T) {
	for i := range *worlds {
		w := newWorld(t, *seed+i)
		if len(w.levels) == 0 {
			continue
		}
		for range 30 {
			w.controller()
			w.kubelet(true)
		}
		different := map[int64]bool{}
		for _, level := range w.levels {
			different[level] = true
		}
		if w.writes != len(different)+1 {
			w.fail("-seed=%d: %d writes for %d priorities", *seed+i, w.writes, len(different))
		}
	}
}

// TestOrderOfStatuses: whatever order the kubelet tells containers in, the plan is the same.
func TestOrderOfStatuses(t *testing.T) {
	for i := range *worlds {
		r := rand.New(rand.NewSource(*seed + i))
		p := five()
		for _, name := range []string{"a", "b", "c", "e", "f"} {
			if r.Intn(2) == 0 {
				with(p, ready, name)
			} else if r.Intn(2) == 0 {
				with(p, blocked, name)
			}
		}
		b := barrier("u1")
		for _, k := range []string{"p_5", "p_3", "p_0"} {
			if r.Intn(2) == 0 {
				b.Data[k] = "true"
			}
		}
		q := p.DeepCopy()
		r.Shuffle(len(q.Status.ContainerStatuses), func(i, j int) {
			all := q.Status.ContainerStatuses
			all[i], all[j] = all[j], all[i]
		})
		one, other := launch.Next(launch.Input{Pod: p, Barrier: b}), launch.Next(launch.Input{Pod: q, Barrier: b})
		if diff := cmp.Diff(one, other); diff != "" {
			t.Fatalf("-seed=%d:\n%s", *seed+i, diff)
		}
	}
}

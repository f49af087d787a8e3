package launch_test

import (
	"flag"
	"testing"
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

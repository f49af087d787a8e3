package launch_test

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/launch"
)

// The same cases each time, unless others are asked for: go test ./launch -seed=1000000. A failure names the case.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 500, "how many random cases to play")
)

// world is a pod with its barrier, a kubelet that starts what it can, and a controller that remembers the barrier and is only
// asked when something has changed.
type world struct {
	*rand.Rand

	t       *testing.T
	pod     *corev1.Pod
	barrier *corev1.ConfigMap
	known   *corev1.ConfigMap
	serial  int
	levels  map[string]int64
	ever    map[string]bool // keys that were open for this pod
	reads   int
	writes  int
	told    []string
}

func newWorld(t *testing.T, seed int64) *world {
	w := &world{Rand: rand.New(rand.NewSource(seed)), t: t}
	w.create()
	return w
}

// create makes a pod with the name of the one before, whose barrier stays for a while.
func (w *world) create() {
	w.serial++
	priorities := make([]string, 2+w.Intn(4))
	for i := range priorities {
		priorities[i] = strconv.Itoa(w.Intn(4) - 1)
	}
	p := asking(priorities...)
	p.UID = types.UID(fmt.Sprintf("u%d", w.serial))
	if w.Intn(3) == 0 {
		p.Annotations = map[string]string{ordered: "Ordered"}
	}
	got, faults := launch.Inject(p, launch.Options{})
	if faults != nil {
		w.t.Fatal(faults)
	}
	w.pod = p
	w.levels, w.ever = map[string]int64{}, map[string]bool{}
	if got.Pod == nil {
		return
	}
	w.pod = got.Pod
	w.known = nil
	for _, c := range w.pod.Spec.Containers {
		key := c.Env[len(c.Env)-1].ValueFrom.ConfigMapKeyRef.Key
		n, err := strconv.ParseInt(strings.TrimPrefix(key, "p_"), 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		w.levels[c.Name] = n
		w.pod.Status.ContainerStatuses = append(w.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
	}
	w.Shuffle(len(w.pod.Status.ContainerStatuses), func(i, j int) {
		all := w.pod.Status.ContainerStatuses
		all[i], all[j] = all[j], all[i]
	})
	w.say("pod %s wants %v", w.pod.UID, w.levels)
}

func (w *world) say(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format+"\n"+strings.Join(w.told, "\n"), args...)
}

func key(level int64) string { return fmt.Sprintf("p_%d", level) }

// kubelet starts the containers whose keys are there, and stops and readies some at random.
func (w *world) kubelet(calm bool) {
	for i := range w.pod.Status.ContainerStatuses {
		s := &w.pod.Status.ContainerStatuses[i]
		open := w.barrier != nil
		if open {
			_, open = w.barrier.Data[key(w.levels[s.Name])]
		}
		switch {
		case s.State.Running != nil && !calm && w.Intn(8) == 0:
			s.State, s.Ready = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, false
			w.say("%s ends", s.Name)
		case s.State.Running != nil && !calm && w.Intn(8) == 0:
			s.Ready = false
			w.say("%s is not ready", s.Name)
		case s.State.Running != nil:
			s.Ready = s.Ready || calm || w.Intn(2) == 0
		case open:
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			w.say("%s starts", s.Name)
		default:
			blocked(s)
		}
	}
}

// controller looks if there is anything to look at.
func (w *world) controller() {
	if !launch.Concerns(w.pod, launch.Rules{}) {
		return
	}
	in := launch.Input{Pod: w.pod, Barrier: w.known}
	if w.known == nil || launch.Doubts(in) {
		w.reads++
		in.Barrier = w.barrier.DeepCopy()
	}
	w.carryOut(in.Barrier, launch.Step(in))
}

func (w *world) carryOut(saw *corev1.ConfigMap, p launch.Plan) {
	w.say("plan %+v", inShort(p))
	w.known = saw
	if p.Remove != "" {
		if w.barrier == nil || w.barrier.UID != p.Remove || w.barrier.OwnerReferences[0].UID == w.pod.UID {
			w.fail("it removes what is not a former barrier")
		}
		w.barrier = nil
		w.writes++
	}
	if p.Create != nil {
		if w.barrier != nil {
			w.known = nil // it is there; look next time
			return
		}
		w.serial++
		w.barrier = p.Create.DeepCopy()
		w.barrier.UID = types.UID(fmt.Sprintf("b%d", w.serial))
		w.opened(p.Create.Data, p.Complete)
		w.known = w.barrier.DeepCopy()
		w.writes++
	}
	if len(p.Add) > 0 {
		if w.barrier == nil || w.barrier.UID != saw.UID {
			w.known = nil
			return
		}
		more := map[string]string{}
		for _, k := range p.Add {
			more[k] = "true"
			w.barrier.Data[k] = "true"
		}
		w.opened(more, p.Complete)
		w.known = w.barrier.DeepCopy()
		w.writes++
	}
	if p.Complete {
		for _, level := range w.levels {
			if _, open := w.barrier.DeepCopy().Data[key(level)]; !open && w.known != nil && w.known.UID == w.barrier.UID {
				w.fail("complete, and %s is not open", key(level))
			}
		}
		if w.pod.Annotations == nil {
			w.pod.Annotations = map[string]string{}
		}
		w.pod.Annotations[completedKey] = "true"
		w.writes++
	}
}

// opened is the law of the order, by a look at every pair.
func (w *world) opened(keys map[string]string, last bool) {
	for k := range keys {
		for name, level := range w.levels {
			s := w.pod.Status.ContainerStatuses[slices.IndexFunc(w.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })]
			for _, mine := range w.levels {
				if key(mine) == k && level > mine && !s.Ready && !w.ever[k] {
					w.fail("%s is opened while %s of %d is not ready; last %t", k, name, level, last)
				}
			}
		}
	}
	for k := range keys {
		w.ever[k] = true
	}
}

func (w *world) mishap() {
	switch w.Intn(20) {
	case 0:
		w.say("the barrier is lost")
		w.barrier = nil
	case 1:
		w.create()
	case 2:
		w.known = nil // another process takes over
	case 3:
		if w.barrier != nil && len(w.barrier.OwnerReferences) > 0 && w.barrier.OwnerReferences[0].UID != w.pod.UID {
			w.say("garbage is collected")
			w.barrier = nil
		}
	}
}

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

// TestCost counts what a pod costs that nothing happens to: one read, a write for each priority, and the mark.
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
		if w.writes != len(different)+1 || w.reads != 1 {
			w.fail("-seed=%d: %d writes and %d reads for %d priorities", *seed+i, w.writes, w.reads, len(different))
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
		one, other := launch.Step(launch.Input{Pod: p, Barrier: b}), launch.Step(launch.Input{Pod: q, Barrier: b})
		if diff := cmp.Diff(one, other); diff != "" {
			t.Fatalf("-seed=%d:\n%s", *seed+i, diff)
		}
	}
}

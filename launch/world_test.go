package launch_test

import (
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

// world is a pod with its barrier, a kubelet that starts what it can, and a controller that reads the barrier and
// is only asked when something has changed.
type world struct {
	*rand.Rand

	t       *testing.T
	pod     *corev1.Pod
	barrier *corev1.ConfigMap
	known   *corev1.ConfigMap
	serial  int
	levels  map[string]int64
	ever    map[string]bool // keys that were open for this pod
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
	if !launch.Concerns(w.pod, launch.Policy{}) {
		return
	}
	in := launch.Input{Pod: w.pod, Barrier: w.barrier.DeepCopy()}
	plan, other := launch.Next(in), launch.Input{Pod: w.pod.DeepCopy(), Barrier: in.Barrier}
	slices.Reverse(other.Pod.Status.ContainerStatuses)
	if diff := cmp.Diff(plan, launch.Next(other)); diff != "" {
		w.fail("the order of the statuses matters:\n%s", diff)
	}
	w.carryOut(in.Barrier, plan)
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
			s := w.pod.Status.ContainerStatuses[slices.IndexFunc(w.pod.Status.ContainerStatuses,
				func(s corev1.ContainerStatus) bool { return s.Name == name })]
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

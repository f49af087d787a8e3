package finish_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
)

// The same cases each time, unless others are asked for: go test ./sidecar/finish -args -seed=1000000. A failure names
// the case.
var (
	seed   = flag.Int64("seed", 1, "the first of the random cases")
	worlds = flag.Int64("worlds", 500, "how many random cases to play")
)

// world is a pod on a node whose daemon is there, dies, or cannot stop a container.
type world struct {
	*rand.Rand

	t       *testing.T
	pod     *corev1.Pod
	node    *corev1.Node
	request *request
	now     time.Time
	serial  int
	told    []string
	stopped []string
}

func newWorld(t *testing.T, seed int64) *world {
	w := &world{Rand: rand.New(rand.NewSource(seed)), t: t, now: at(0), node: realNode()}
	policy := never
	if w.Intn(2) == 0 {
		policy = onFailure
	}
	var parts []part
	for i := range 1 + w.Intn(2) {
		parts = append(parts, mainOf(fmt.Sprintf("main%d", i), running()))
	}
	for i := range 1 + w.Intn(4) {
		var env []string
		for _, e := range []string{killEnv, ignoreEnv, imageEnv} {
			if w.Intn(3) > 0 {
				env = append(env, e)
			}
		}
		parts = append(parts, sidecar(fmt.Sprintf("s%d", i), running(), env...))
	}
	w.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	w.pod = newPod(policy, parts...)
	if w.Intn(4) == 0 {
		w.node = virtualNode()
	}
	return w
}

func (w *world) say(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.told {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// sort of a container, by a reading of its variables that knows nothing of the package.
func sort(c corev1.Container) string {
	has := func(name string) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	}
	switch {
	case has(killEnv) && has(ignoreEnv):
		return "ignored"
	case has(killEnv):
		return "killed"
	case has(imageEnv):
		return "image"
	default:
		return "main"
	}
}

// ended says whether all containers of some sorts have.
func (w *world) ended(sorts ...string) bool {
	for i, c := range w.pod.Spec.Containers {
		if slices.Contains(sorts, sort(c)) && w.pod.Status.ContainerStatuses[i].State.Terminated == nil {
			return false
		}
	}
	return true
}

func (w *world) end(i int, code int32) {
	s := &w.pod.Status.ContainerStatuses[i]
	s.State = ended(code)
	s.State.Terminated.FinishedAt = metav1.NewTime(w.now)
	w.say("%s %s ends with %d", w.now.Format(time.TimeOnly), s.Name, code)
	if w.pod.Spec.RestartPolicy == onFailure && code != 0 {
		s.State = running()
		s.RestartCount++
	}
}

// live lets time pass.
func (w *world) live() {
	w.now = w.now.Add(5 * time.Second)
	for i, c := range w.pod.Spec.Containers {
		s := w.pod.Status.ContainerStatuses[i]
		switch {
		case s.State.Terminated != nil:
		case sort(c) == "main" && w.Intn(4) == 0:
			w.end(i, int32(w.Intn(2)))
		case c.Image == "exit:1":
			w.end(i, 0)
		}
	}
	if r := w.request; r != nil && r.Status.CompletionTime == nil {
		w.daemon(r)
	}
}

// daemon does something about a request.
func (w *world) daemon(r *request) {
	now := metav1.NewTime(w.now)
	if w.Intn(6) == 0 {
		r.Status.Phase, r.Status.CompletionTime, r.Status.Message = v1beta1.ContainerRecreateRequestCompleted, &now,
			"daemon has not responded for a long time"
		w.say("%s the request ends: %s", w.now.Format(time.TimeOnly), r.Status.Message)
		return
	}
	for _, c := range r.Spec.Containers {
		i := slices.IndexFunc(w.pod.Spec.Containers, func(s corev1.Container) bool { return s.Name == c.Name })
		if w.pod.Status.ContainerStatuses[i].State.Terminated == nil && w.Intn(2) == 0 {
			if s := sort(w.pod.Spec.Containers[i]); s == "main" || !w.ended("main") || s == "image" ||
				s == "ignored" && !w.ended("killed") {
				w.fail("container %s is stopped", c.Name)
			}
			w.stopped = append(w.stopped, c.Name)
			w.end(i, 0)
		}
	}
}

// controller is asked, and does what the answer says.
func (w *world) controller() finish.Action {
	in := finish.Input{Pod: w.pod, Node: w.node, Request: w.request, Now: w.now}
	p := finish.Next(in)
	mixed := in
	mixed.Pod = w.pod.DeepCopy()
	w.Shuffle(len(mixed.Pod.Status.ContainerStatuses), func(i, j int) {
		all := mixed.Pod.Status.ContainerStatuses
		all[i], all[j] = all[j], all[i]
	})
	if diff := cmp.Diff(inShort(p), inShort(finish.Next(mixed))); diff != "" {
		w.fail("the order of states matters: %s", diff)
	}
	if len(p.Writes) == 0 {
		return p
	}
	short := inShort(p)
	w.say("%s plan %+v", w.now.Format(time.TimeOnly), short)
	for i := range w.pod.Spec.Containers {
		if image, is := short.Images[w.pod.Spec.Containers[i].Name]; is {
			w.pod.Spec.Containers[i].Image = image
		}
	}
	if short.Phase != "" {
		if !w.ended("main", "killed") {
			w.fail("the phase is settled too early")
		}
		w.pod.Status.Phase = short.Phase
	}
	if short.Delete != "" {
		if w.request == nil || string(w.request.UID) != short.Delete {
			w.fail("it deletes %s", short.Delete)
		}
		w.request = nil
	}
	if request := created(p); request != nil {
		if w.request != nil {
			w.fail("there is a request already")
		}
		w.serial++
		w.request = request.DeepCopy()
		w.request.UID, w.request.CreationTimestamp = types.UID(fmt.Sprint(w.serial)), metav1.NewTime(w.now)
	}
	in.Request = w.request
	if next := finish.Next(in); len(next.Writes) > 0 {
		w.fail("after the plan comes %+v", inShort(next))
	}
	return p
}

// atRest says whether no container that anybody would end is running.
func (w *world) atRest() bool {
	if w.node.Labels == nil {
		return w.ended("main", "killed", "ignored")
	}
	return w.ended("main", "killed", "ignored", "image")
}

// TestLaws plays pods to their end, with daemons that answer or do not.
func TestLaws(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	settled, stopped := 0, 0
	for i := range *worlds {
		w := newWorld(t, *seed+i)
		w.say("-seed=%d: %s", *seed+i, jsonOf(w.pod.Spec))
		for range 600 {
			w.live()
			w.controller()
			if w.atRest() {
				break
			}
		}
		wanted := []string{"main", "killed", "ignored"}
		if w.node.Labels != nil {
			wanted = []string{"main"}
			for j, c := range w.pod.Spec.Containers {
				has := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == imageEnv })
				if has && w.pod.Status.ContainerStatuses[j].State.Terminated == nil {
					w.fail("-seed=%d: %s never ends", *seed+i, c.Name)
				}
			}
			if w.request != nil {
				w.fail("-seed=%d: a request on a virtual node", *seed+i)
			}
		}
		if !w.ended(wanted...) {
			w.fail("-seed=%d: the pod never ends", *seed+i)
		}
		if w.pod.Status.Phase != corev1.PodRunning {
			settled++
		}
		stopped += len(w.stopped)
	}
	if settled < int(*worlds)/10 || stopped < int(*worlds)/2 {
		t.Errorf("%d pods were settled and %d sidecars stopped, so that little was tried", settled, stopped)
	}
}

// FuzzNext has plans made for whatever an API server stores.
func FuzzNext(f *testing.F) {
	f.Add(jsonOf(newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv, ignoreEnv))),
		jsonOf(made("s1")), true)
	f.Add(jsonOf(newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv))),
		jsonOf(over(made("s1"), 3, "no", "Failed")), false)
	f.Fuzz(func(t *testing.T, x, y string, isVirtual bool) {
		pod, r := &corev1.Pod{}, &request{}
		if json.Unmarshal([]byte(x), pod) != nil || json.Unmarshal([]byte(y), r) != nil {
			return
		}
		in := finish.Input{Pod: pod, Node: realNode(), Request: r, Now: at(120)}
		if isVirtual {
			in.Node = virtualNode()
		}
		before := jsonOf(in)
		plan := finish.Next(in)
		if jsonOf(in) != before {
			t.Fatal("the input is changed")
		}
		if len(plan.Writes) > 0 && !finish.Concerns(pod) {
			t.Fatal("a plan for a pod that is of no concern")
		}
		if request := created(plan); request != nil && (isVirtual || len(request.Spec.Containers) == 0) {
			t.Fatalf("request %+v", request.Spec)
		}
		for _, w := range plan.Writes {
			if _, err := w.Data(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

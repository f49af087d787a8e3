package cloneset_test

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// story is one rollout of a set that has settled.
type story struct {
	why       string
	replicas  int32
	set       []setChange
	hookDelay int
	// then are the changes of the user, before the turn of their number.
	then map[int][]setChange
}

type setChange = func(*v1beta1.CloneSet)

func rolling(change func(*v1beta1.RollingUpdateCloneSetStrategy)) setChange {
	return func(s *v1beta1.CloneSet) { change(s.Spec.UpdateStrategy.RollingUpdate) }
}

func bounds(maxUnavailable, maxSurge int32) setChange {
	return rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) {
		u.MaxUnavailable, u.MaxSurge = ptr.To(intstr.FromInt32(maxUnavailable)), ptr.To(intstr.FromInt32(maxSurge))
	})
}

func grace(seconds int32) setChange {
	return rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) {
		u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

func scaled(n int32) setChange { return func(s *v1beta1.CloneSet) { s.Spec.Replicas = &n } }

// withEnv changes what only a new pod takes.
func withEnv(value string) setChange {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: value}}
	}
}

func stories() map[string]story {
	type changes = []setChange
	release2 := map[int][]setChange{0: {image("web:2")}}
	hook := byLabel("hook")
	return map[string]story{
		"in-place": {
			why: "a new image goes into the pods one by one", replicas: 2, set: changes{bounds(1, 0)}, then: release2,
		},
		"surge": {
			why:      "pods are recreated while none may be missing: one more is created first, and the last one too many goes",
			replicas: 2, set: changes{bounds(0, 1)}, then: map[int][]setChange{0: {image("web:2"), withEnv("high")}},
		},
		"grace-period-taken-back": {
			why:      "what waits for the end of the grace period is dropped, and the pods go back into traffic",
			replicas: 2, set: changes{bounds(2, 0), grace(10)},
			then: map[int][]setChange{0: {image("web:2")}, 4: {image("web:1")}},
		},
		"min-ready-seconds": {
			why:      "a pod counts after it was ready for five seconds; nothing but a requeue marks that time",
			replicas: 2, set: changes{bounds(1, 0), func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 5 }}, then: release2,
		},
		"paused": {
			why:      "updates that have begun are completed, and no other begins before the set is resumed",
			replicas: 3, set: changes{bounds(1, 0)},
			then: map[int][]setChange{
				0:  {image("web:2")},
				2:  {rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Paused = true })},
				12: {rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Paused = false })},
			},
		},
		"scale-during-rollout": {
			why:      "new pods are created at the new revision, and old ones are the first to be deleted",
			replicas: 3, set: changes{bounds(1, 0)},
			then: map[int][]setChange{0: {image("web:2")}, 2: {scaled(5)}, 6: {scaled(3)}},
		},
		"partition-raised": {
			why:      "all but one pod are updated when the user raises the partition: two of them go back",
			replicas: 4, set: changes{bounds(2, 0), partition(1)},
			then: map[int][]setChange{0: {image("web:2")}, 14: {partition(3)}},
		},
		"never-ready": {
			why:      "a broken revision stops with the pod that may be unavailable, and a fix takes that pod first",
			replicas: 3, set: changes{bounds(1, 0)},
			then: map[int][]setChange{0: {image("web:2:broken")}, 12: {image("web:3")}},
		},
		"overtaken": {
			why:      "v3 overtakes v2, also in a pod whose update is not complete; the other pods never get v2",
			replicas: 3, set: changes{bounds(1, 0)}, then: map[int][]setChange{0: {image("web:2")}, 1: {image("web:3")}},
		},
		"hook-update": {
			why:      "a hook holds a pod before its update, and after the update until its owner takes the pod back",
			replicas: 1, set: changes{hooked(kruise.Lifecycle{InPlaceUpdate: hook})}, hookDelay: 2, then: release2,
		},
		"hook-update-taken-back": {
			why:      "the user takes the update back while a hook holds the pod, which becomes Normal as it is",
			replicas: 1, set: changes{hooked(kruise.Lifecycle{InPlaceUpdate: hook})}, hookDelay: 20,
			then: map[int][]setChange{0: {image("web:2")}, 3: {image("web:1")}},
		},
		"hook-delete-restored": {
			why:      "a pod that a hook holds before its deletion is wanted again",
			replicas: 2, set: changes{hooked(kruise.Lifecycle{PreDelete: hook})}, hookDelay: 20,
			then: map[int][]setChange{0: {scaled(1)}, 3: {scaled(2)}},
		},
		"hook-delete": {
			why:      "a hook holds a pod before its deletion until its owner releases the pod",
			replicas: 2, set: changes{hooked(kruise.Lifecycle{PreDelete: hook})}, hookDelay: 2,
			then: map[int][]setChange{0: {scaled(1)}},
		},
		"hook-normal": {
			why:      "a hook holds a new pod before the pod counts",
			replicas: 1, set: changes{hooked(kruise.Lifecycle{PreNormal: hook})}, hookDelay: 2,
			then: map[int][]setChange{0: {scaled(2)}},
		},
	}
}

// play tells the story of a process that dies at a write; 0 for none.
func (s *story) play(t *testing.T, dies int) (w *world, told string) {
	t.Helper()
	w = newWorld(t, 1, s.replicas, s.set...)
	w.hookDelay = s.hookDelay
	w.settles()
	w.Server.Requests()
	w.process.DieAt(dies)
	events := map[int]storytest.Event{}
	for turn, changes := range s.then {
		events[turn] = storytest.Event{Line: "the user changes the set", Do: func() { w.change(w.set, changes...) }}
	}
	told = storytest.Job{
		Why: s.why, Model: w.Model, Object: w.set, Events: events, Run: w.step, Picture: w.picture, Counters: w.counters,
		Readable: func(requests []string) []string {
			slices.SortStableFunc(requests, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
			return requests
		},
	}.Text(t)
	if why := w.missing(); why != "" {
		t.Fatalf("the set is not as it asks for: %s\n%s", why, told)
	}
	return w, told
}

// place orders the requests of a pass, which go out in parallel: revisions, pods by their names, the status.
func place(request string) string {
	if m := regexp.MustCompile(` (?:pods|persistentvolumeclaims)/\S*web-([a-z]+)`).FindStringSubmatch(request); m != nil {
		return "1" + m[1]
	}
	if strings.Contains(request, " controllerrevisions/") {
		return "0"
	}
	return "2"
}

// counters are those of the status, and the notes of the pass.
func (w *world) counters() string {
	s := w.set.Status
	text := fmt.Sprintf("%d replicas, %d available, %d updated", s.Replicas, s.AvailableReplicas, s.UpdatedReplicas)
	for _, n := range w.notes {
		if n.Code != scale.NoteNotAvailable { // the counters show it
			text += "; " + n.String()
		}
	}
	return text
}

// A story is a rollout, turn by turn: the requests of the reconciler, and the pods after them.
func TestStories(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			_, told := s.play(t, 0)
			storytest.Compare(t, name, told)
		})
	}
}

// A rollback during the grace period restarts nothing, whatever the limits: the containers have not changed yet.
func TestRollbackInGrace(t *testing.T) {
	for name, s := range map[string]story{
		"all at once": {
			replicas: 4, set: []setChange{bounds(4, 0), grace(10)},
			then: map[int][]setChange{0: {image("web:2")}, 5: {image("web:1")}},
		},
		"two by two": {
			replicas: 4, set: []setChange{bounds(2, 0), grace(10)},
			then: map[int][]setChange{0: {image("web:2")}, 5: {image("web:1")}},
		},
		"partition": {
			replicas: 4, set: []setChange{bounds(4, 0), grace(10), partition(1)},
			then: map[int][]setChange{0: {image("web:2")}, 5: {partition(4)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, told := s.play(t, 0)
			if got := w.outcome(false); strings.Count(got, "web:1 Normal, restarted 0 times") != 4 {
				t.Errorf("%s\n%s", got, told)
			}
		})
	}
}

// The process of the reconciler dies at a write of each story, before the server applies the write or after. The story
// ends as if nothing had happened.
func TestDeath(t *testing.T) { runDeaths(t, 3) }

func runDeaths(t *testing.T, step int) {
	t.Helper()
	all := stories()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			s := all[name]
			whole, _ := s.play(t, 0)
			hurried := len(s.then) > 1
			for at := 1; at <= whole.process.Written(); at += step {
				w, told := s.play(t, at)
				if want, got := whole.outcome(hurried), w.outcome(hurried); got != want {
					t.Errorf("death at write %d: %s, want %s\n%s", at, got, want, told)
				}
			}
		})
	}
}

// outcome is what counts in the end. Where the user acts in the middle of a rollout, which pods are created, and how
// often containers restart, depends on how far the rollout has come.
func (w *world) outcome(hurried bool) string {
	w.Helper()
	var lines []string
	for _, pod := range w.Pods() {
		text := pod.Spec.Containers[0].Image + " " + pod.Labels[kruise.LifecycleStateKey]
		if !hurried {
			text += fmt.Sprintf(", restarted %d times", pod.Status.ContainerStatuses[0].RestartCount)
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	if !hurried {
		lines = append(lines, fmt.Sprintf("%d pods were created", w.rules.created))
	}
	return strings.Join(lines, "; ")
}

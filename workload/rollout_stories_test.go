package workload_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/storytest"
	"github.com/kruisekit/kruisekit/workload"
)

// mode is what the instances of a workload are.
type mode string

const (
	interchangeable mode = "interchangeable"
	slots           mode = "slots"
	groups          mode = "groups"
)

// siteStory is a rollout of groups, or of pods with slots.
type siteStory struct {
	why     string
	mode    mode
	inOrder bool
	set     []func(*appsv1.StatefulSet)
	// then are the changes of the user, each once nothing is left to do.
	then [][]func(*appsv1.StatefulSet)
	// writes is how many each update in place takes; 0 where the story shows something else.
	writes int
}

func siteStories() map[string]siteStory {
	change := func(changes ...func(*appsv1.StatefulSet)) []func(*appsv1.StatefulSet) { return changes }
	release2 := change(withImage("web:2"))
	return map[string]siteStory{
		"groups": {
			why:  "groups of a leader and two workers are updated in place as one, one group at a time",
			mode: groups, set: change(withReplicas(2)), then: [][]func(*appsv1.StatefulSet){release2}, writes: 4,
		},
		"groups recreate": {
			why:  "groups of a leader and two workers are recreated as one",
			mode: groups, set: change(withReplicas(2)), then: [][]func(*appsv1.StatefulSet){change(withImage("web:2"), withEnv)},
		},
		"slots": {
			why:  "pods with slots are updated in place, from the last to the first; the partition keeps the first one",
			mode: slots, set: change(withPartition(1)), writes: 4,
			then: [][]func(*appsv1.StatefulSet){release2, change(withPartition(0))},
		},
		"slots in order": {
			why:  "slots are filled one after the other, and recreated from the last to the first; then two go",
			mode: slots, inOrder: true,
			then: [][]func(*appsv1.StatefulSet){change(withImage("web:2"), withEnv), change(withReplicas(1))},
		},
	}
}

// A story is a rollout, turn by turn: the requests of the operator, and the pods after them.
func TestSiteStories(t *testing.T) {
	for name, story := range siteStories() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, story.mode, 1, func(s *site) {
				s.inOrder = story.inOrder
				for _, change := range story.set {
					change(s.set)
				}
			})
			told := &strings.Builder{}
			fmt.Fprintf(told, "# %s\n\n", story.why)
			s.tell(told)
			for _, change := range story.then {
				s.change(change...)
				s.Server.Requests()
				fmt.Fprint(told, "\n        # the user changes the set\n")
				s.tell(told)
				s.settled()
			}
			for _, n := range s.rules.counted {
				if story.writes > 0 && n != story.writes {
					t.Errorf("%d writes for an update in place, want %d", n, story.writes)
				}
			}
			if story.writes > 0 && len(s.rules.counted) == 0 {
				t.Error("nothing was updated in place")
			}
			storytest.Compare(t, name, told.String())
		})
	}
}

// tell takes turns until nothing is left to do.
func (s *site) tell(told *strings.Builder) {
	s.Helper()
	for range 200 {
		before := s.Server.Version()
		s.turn()
		if requests := s.Server.Requests(); len(requests) > 0 {
			fmt.Fprintf(told, "%6s  %s\n", s.Clock.Sub(start).Round(time.Second), s.picture())
			fmt.Fprintf(told, "        %s\n", strings.Join(requests, "\n        "))
		}
		s.RunPods()
		switch {
		case s.Server.Version() != before:
			s.Advance(time.Second)
		case s.Due.After(s.Clock):
			s.Clock = s.Due
		default:
			fmt.Fprintf(told, "\n%s\n", s.picture())
			return
		}
	}
	s.Fatalf("the story does not end:\n%s", told)
}

// start is when the clock of a model begins.
var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// turn is a pass, after which no rule is broken.
func (s *site) turn() {
	s.Helper()
	s.Model.Reconcile()
	if s.death != nil && s.death.sent >= s.death.at {
		s.start(s.Server)
	}
	if len(s.rules.broken) > 0 {
		s.Fatalf("%s\n%s\nlatest requests:\n%s", s.rules.broken[0], s.picture(), strings.Join(s.Server.Requests(), "\n"))
	}
}

// settled runs until the set is as it asks for, and expects no request after that.
func (s *site) settled() {
	s.Helper()
	why := s.unsettled()
	for range 300 {
		if why == nil {
			break
		}
		s.turn()
		s.answerHooks()
		s.RunPods()
		s.Advance(time.Second)
		why = s.unsettled()
	}
	if why != nil {
		s.Fatalf("%v; pods %s, latest requests:\n%s", why, s.picture(), strings.Join(s.Server.Requests(), "\n"))
	}
	for range 3 * (s.lag + 1) {
		s.turn()
	}
	s.Server.Requests()
	if s.turn(); len(s.Server.Requests()) > 0 {
		s.Error("requests although nothing is left to do")
	}
}

// answerHooks has the owner of hooks release pods before their update, and take them back after it.
func (s *site) answerHooks() {
	if s.hooks == nil {
		return
	}
	s.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		after := pod.DeepCopy()
		switch state := lifecycle.StateOf(pod); {
		case pod.DeletionTimestamp != nil || s.random.IntN(2) == 0:
		case state == kruise.LifecycleStatePreparingUpdate:
			delete(after.Labels, "hold")
		case state == kruise.LifecycleStateUpdated:
			after.Labels["hold"] = "yes"
		}
		return after
	})
}

var errDead = errors.New("the process is dead")

// death ends a process at one of its writes, before the server applies the write or after.
type death struct {
	at    int
	after bool
	sent  int
}

func (d *death) write(_ string, write func() error) error {
	if d.sent++; d.sent > d.at || d.sent == d.at && !d.after {
		return errDead
	}
	if err := write(); err != nil || d.sent < d.at {
		return err
	}
	return errDead
}

// die has the process die.
func (s *site) die(d *death) {
	s.start(podbench.Writes(s.Server, d.write))
	s.death = d
}

// A pod whose writes are all refused stops no other instance.
func TestEachFailureIsItsOwn(t *testing.T) {
	for i := range 24 { // of each mode, strategy and victim
		m := []mode{interchangeable, slots, groups, groups}[i%4]
		t.Run(fmt.Sprintf("%s %d", m, i), func(t *testing.T) {
			s := newSite(t, m, 1, func(s *site) {
				s.numbered = i%4 == 3
				if i >= 16 {
					s.strategy = workload.Recreate
				}
				s.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &intstr.IntOrString{IntVal: 2}
			})
			s.settled()
			victim := s.Pods()[i/4%len(s.Pods())]
			s.start(podbench.Writes(s.Server, func(what string, write func() error) error {
				if strings.HasSuffix(what, "/"+victim.Name) {
					return refused()
				}
				return write()
			}))
			s.change(withImage("web:2"))
			for range 60 {
				s.turn()
				s.RunPods()
				s.Advance(time.Second)
			}
			for _, pod := range s.Pods() {
				of := pod.Labels[groupLabel] == victim.Labels[groupLabel]
				if done := isUp(pod) && pod.Spec.Containers[0].Image == "web:2"; !of && !done {
					t.Errorf("the writes of %s are refused, and %s is not updated: %s", victim.Name, pod.Name, s.picture())
				}
			}
			s.start(s.Server)
			s.settled()
		})
	}
}

// Whatever users, nodes and faults do, the rules of groups and slots hold after each write, and the set becomes as it
// asks for.
func TestSiteRandom(t *testing.T) { runSites(t, 0, 4) }

func runSites(t *testing.T, first, n uint64) {
	t.Helper()
	for _, m := range []mode{interchangeable, groups, slots} {
		for seed := first; seed < first+n; seed++ {
			t.Run(fmt.Sprintf("%s, seed=%d", m, seed), func(t *testing.T) { runSite(t, m, seed) })
		}
	}
}

func runSite(t *testing.T, m mode, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 4))
	s := newSite(t, m, seed, func(s *site) {
		s.inOrder, s.lag = m == slots && r.IntN(2) == 0, r.IntN(4)
		if r.IntN(3) == 0 {
			s.strategy = workload.Recreate
		}
		rolling := s.set.Spec.UpdateStrategy.RollingUpdate
		rolling.MaxUnavailable = &intstr.IntOrString{IntVal: int32(1 + r.IntN(2))}
		if s.grace = int32(max(r.IntN(9)-5, 0)); r.IntN(3) == 0 {
			hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}
			s.hooks, s.set.Spec.Template.Labels["hold"] = &kruise.Lifecycle{InPlaceUpdate: hook}, "yes"
		}
	})
	faults := &podbench.Chance{Seed: seed, Of: 12}
	for range 60 {
		s.act(r, faults)
		s.turn()
		s.answerHooks()
		if r.IntN(2) == 0 {
			s.RunPods()
		}
		s.Advance(time.Second)
	}
	faults.Of = 0
	s.start(s.Server)
	s.change(withImage("web:9"), withPartition(0))
	s.settled()
}

// act is what the user or a fault does.
func (s *site) act(r *rand.Rand, faults *podbench.Chance) {
	pods := s.Pods()
	switch r.IntN(14) {
	case 0, 1:
		s.change(withImage(fmt.Sprint("web:", 1+r.IntN(3))))
	case 2:
		s.change(withPartition(int32(r.IntN(4))))
	case 3:
		s.change(withReplicas(int32(r.IntN(5))))
	case 4:
		s.change(withEnv)
	case 5:
		if len(pods) > 0 {
			_ = s.Server.Delete(s.Context(), pods[r.IntN(len(pods))])
		}
	case 6:
		if len(pods) > 0 {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, kruise.SpecifiedDeleteKey)
			_ = s.Server.Patch(s.Context(), pods[r.IntN(len(pods))], client.RawPatch(types.MergePatchType, patch))
		}
	case 7, 8:
		s.die(&death{at: 1 + r.IntN(6), after: r.IntN(2) == 0})
	case 9:
		s.start(podbench.Writes(s.Server, faults.Do))
	}
}

func withImage(image string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = image }
}

// withEnv changes what only a new pod takes.
func withEnv(s *appsv1.StatefulSet) {
	c := &s.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "b"})
}

func withPartition(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}

func withReplicas(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n }
}

package workload_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// updating is the input of a pass over pods that another controller creates.
func (s *server) updating(slots ...string) workload.Input {
	return workload.Input{
		Scale: scale.Input{
			Now: s.now, Slots: slots, UpdateOnly: true, UnavailableFirst: true, Limits: scale.Limits{MaxUnavailable: 1},
		},
		Instances: workload.Pods(s.all()),
		Update:    rev(s, "web-2", "web:2"), Current: rev(s, "web-1", "web:1"),
		Strategy: workload.InPlaceIfPossible, Policy: inplace.Policy{Relabel: inplace.RelabelLast},
		Evict: true, KeepState: true, IgnoreMarks: true,
	}
}

func notNow() error {
	return apierrors.NewTooManyRequests("the disruption budget needs 3 healthy pods", 7)
}

// TestUpdateOnly: a pass over the pods of another controller changes them in place or evicts them, and does no more.
func TestUpdateOnly(t *testing.T) {
	evictions := func(err error) func(*workload.Write) error {
		return func(w *workload.Write) error {
			if w.Verb == write.Delete || w.Verb == write.Create {
				return fmt.Errorf("%s is not expected", w)
			}
			if w.Verb == write.Evict {
				return err
			}
			return nil
		}
	}
	cases := map[string]struct {
		why    string
		pods   func(*server)
		change func(*workload.Input)
		fails  error
		sent   []string
		notes  []string
		after  time.Duration
		failed bool
	}{
		"in place": {
			why: "the last slot goes first", sent: []string{"Unready c", "Update c"}, notes: []string{scale.NoteUpdateLimited},
		},
		"recreated": {
			why:    "the pod is evicted",
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			sent:   []string{"Delete c"},
			notes:  []string{scale.NoteUpdateLimited},
		},
		"no room": {
			why: "a refused eviction is a wait for as long as the API server suggests, and no other pod takes the turn",
			change: func(in *workload.Input) {
				in.Strategy, in.Scale.Limits.MaxUnavailable = workload.Recreate, 2
			},
			fails: notNow(),
			sent:  []string{"Delete c", "Delete b"},
			notes: []string{scale.NoteUpdateLimited, workload.NoteNotEvicted, workload.NoteNotEvicted},
			after: 7 * time.Second,
		},
		"forbidden": {
			why:    "another refusal is a failure",
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			fails:  refused(),
			sent:   []string{"Delete c", "Delete b", "Delete a"},
			notes:  []string{scale.NoteUpdateLimited},
			failed: true,
		},
		"gone": {
			why:    "a pod that is gone needs no eviction",
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			fails:  apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "c"),
			sent:   []string{"Delete c"},
			notes:  []string{scale.NoteUpdateLimited},
		},
		"missing": {
			why:   "a slot without a pod spends the budget, and the pass does not fill it",
			pods:  func(s *server) { delete(s.pods, "a") },
			notes: []string{scale.NoteUpdateLimited},
		},
		"finished": {
			why:   "the other controller deletes a pod that has finished",
			pods:  func(s *server) { s.pods["a"].Status.Phase = corev1.PodFailed },
			notes: []string{scale.NoteUpdateLimited, scale.NoteWaitingForDeletion},
		},
		"surplus": {
			why:    "the other controller deletes a pod that is too many, and the pass does not update it",
			change: func(in *workload.Input) { in.Scale.Slots = []string{"a"} },
			sent:   []string{"Unready a", "Update a"},
		},
		"in traffic": {
			why: "a pod without the readiness gate spends the budget until its node runs the change",
			pods: func(s *server) {
				pod := s.pods["c"]
				pod.Spec.ReadinessGates = nil
				pod.Status.Conditions = pod.Status.Conditions[:2]
				s.run(s.updating("a", "b", "c"))
				s.sent = nil
			},
			notes: []string{scale.NoteUpdateLimited, inplace.NoteImage},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, ready("a", "web-1", "web:1"), ready("b", "web-1", "web:1"), ready("c", "web-1", "web:1"))
			if c.pods != nil {
				c.pods(s)
			}
			s.fails = evictions(c.fails)
			in := s.updating("a", "b", "c")
			if c.change != nil {
				c.change(&in)
			}
			pass := s.run(in)
			if d := cmp.Diff(c.sent, s.sent); d != "" {
				t.Errorf("%s: %s", c.why, d)
			}
			var notes []string
			for _, n := range pass.Notes() {
				notes = append(notes, n.Code)
			}
			if d := cmp.Diff(c.notes, notes); d != "" {
				t.Errorf("notes: %s", d)
			}
			if got := pass.RequeueAfter(); got != c.after || (pass.Err() != nil) != c.failed {
				t.Errorf("after %v: %v", got, pass.Err())
			}
		})
	}
}

// counted is another controller, which counts and creates the pods of a workload, and rules that must hold.
type counted struct {
	*server

	r *rand.Rand
	// images of the revisions by name, and the one that is wanted.
	images []string
	wanted int
	// rollout counts the times that another revision was wanted.
	rollout int
	// runs are what the containers run, by UID, and changed how often the image of a pod was written in a rollout.
	runs    map[types.UID]string
	changed map[string]int
	max     int32
	made    int
}

func (*counted) name(k int) string { return fmt.Sprintf("web-%d", k+1) }

func (s *counted) revisions() (update workload.Revision, others []workload.Revision) {
	for k, image := range s.images {
		others = append(others, rev(s, s.name(k), image))
	}
	return others[s.wanted], others
}

// create has the other controller create what is missing, at the wanted revision.
func (s *counted) create(slots []string) {
	for _, name := range slots {
		if s.pods[name] != nil {
			continue
		}
		pod := ready(name, s.name(s.wanted), s.images[s.wanted])
		pod.UID = types.UID(fmt.Sprintf("%s-%d", name, s.made))
		pod.Status.Conditions = pod.Status.Conditions[:2]
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		delete(pod.Labels, kruise.LifecycleStateKey)
		if s.r.IntN(2) == 0 {
			pod.Spec.ReadinessGates = nil
		}
		s.made++
		s.pods[name], s.runs[pod.UID] = pod, s.images[s.wanted]
	}
}

// node has one pod run what its spec says, or become ready.
func (s *counted) node(name string) {
	pod := s.pods[name]
	if pod == nil {
		return
	}
	pod = pod.DeepCopy()
	image, status := pod.Spec.Containers[0].Image, &pod.Status.ContainerStatuses[0]
	open := true
	if lifecycle.HasGate(pod, kruise.InPlaceUpdateReady) {
		gate := lifecycle.ConditionOf(pod, kruise.InPlaceUpdateReady)
		open = gate != nil && gate.Status == corev1.ConditionTrue
	}
	if s.runs[pod.UID] != image {
		s.runs[pod.UID] = image
		status.Image, status.ImageID, status.RestartCount = image, "id-"+image, status.RestartCount+1
		status.ContainerID = fmt.Sprintf("c-%s-%d", pod.UID, status.RestartCount)
		open = false // until the node looks again
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status = corev1.ConditionFalse
			if open {
				c.Status = corev1.ConditionTrue
			}
		}
	}
	s.pods[name] = pod
}

// check expects what must hold after each write: no label before the image, and the bound.
func (s *counted) check(w *workload.Write, outBefore int32, before, after *corev1.Pod) {
	s.Helper()
	label := func(pod *corev1.Pod) string { return pod.Labels[kruise.PodRevisionLabelKey] }
	if after != nil && label(before) != label(after) {
		var k int
		if _, err := fmt.Sscanf(label(after), "web-%d", &k); err != nil || s.runs[after.UID] != s.images[k-1] {
			s.Errorf("%s: label %s, and the container runs %s", w, label(after), s.runs[after.UID])
		}
	}
	if after != nil && before.Spec.Containers[0].Image != after.Spec.Containers[0].Image {
		key := fmt.Sprintf("%s in rollout %d", after.UID, s.rollout)
		if s.changed[key]++; s.changed[key] > 1 {
			s.Errorf("%s: the image has changed %d times", key, s.changed[key])
		}
	}
	if out := s.out(); out > s.max && out > outBefore {
		s.Errorf("%s: %d are out of service, and %d may be", w, out, s.max)
	}
}

// out is how many pods are out of service, or about to be.
func (s *counted) out() (n int32) {
	for _, pod := range s.pods {
		up, _ := scale.Available(pod, 0, s.now)
		if !up || s.runs[pod.UID] != pod.Spec.Containers[0].Image {
			n++
		}
	}
	return n
}

// TestUpdateOnlyRandom runs passes over the pods of another controller, with rollouts at any time, pods that are
// killed, and passes that end after any write.
func TestUpdateOnlyRandom(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &counted{
			server: newServer(t), r: r, images: []string{"web:1"}, runs: map[types.UID]string{}, changed: map[string]int{},
			max: 1 + r.Int32N(2),
		}
		slots := []string{"a", "b", "c", "d"}[:2+r.IntN(3)]
		s.create(slots)
		for step := range 400 {
			s.now = s.now.Add(2 * time.Second)
			calm := step > 150
			switch n := r.IntN(12); {
			case n == 0 && !calm && len(s.images) < 6:
				s.images, s.wanted = append(s.images, fmt.Sprintf("web:%d", len(s.images)+1)), len(s.images)
				s.rollout++
			case n == 1 && !calm:
				s.wanted = r.IntN(len(s.images))
				s.rollout++
			case n == 2 && !calm && s.out() == 0:
				delete(s.pods, slots[r.IntN(len(slots))])
			case n < 7:
				s.node(slots[r.IntN(len(slots))])
			case n < 9:
				s.create(slots)
			default:
				s.pass(slots, calm)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, s.sent)
		}
		for _, pod := range s.pods {
			if pod.Labels[kruise.PodRevisionLabelKey] != s.name(s.wanted) || !workload.IsReady(pod) {
				t.Errorf("seed %d: %s has ended at %v of %s", seed, pod.Name, pod.Labels, s.name(s.wanted))
			}
		}
	}
}

// pass makes a pass, or the beginning of one.
func (s *counted) pass(slots []string, whole bool) {
	in := s.updating(slots...)
	in.Update, in.Revisions = s.revisions()
	in.Current, in.Scale.Limits.MaxUnavailable = in.Update, s.max
	pass, err := workload.Plan(in)
	if err != nil {
		s.Fatal(err)
	}
	left := 1 + s.r.IntN(8)
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for len(writes) > 0 {
			if left--; left < 0 && !whole {
				return
			}
			w := writes[0]
			before, out := s.pods[w.Object.GetName()].DeepCopy(), s.out()
			pod, err := s.send(w)
			if err != nil {
				s.Fatal(err)
			}
			s.check(w, out, before, pod)
			writes = append(writes[1:], pass.Answer(s.now, w, pod, nil)...)
		}
	}
}

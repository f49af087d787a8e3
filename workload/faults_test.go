package workload_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// mode is what the instances of a workload are.
type mode string

const (
	interchangeable mode = "interchangeable"
	slots           mode = "slots"
	groups          mode = "groups"
	groupsInSlots   mode = "groups in slots"
)

// workshop is a workload whose writes are answered by chance.
type workshop struct {
	*server

	seed     uint64
	random   *rand.Rand
	mode     mode
	strategy workload.Strategy
	replicas int
	budget   int
	version  int // of the wanted templates
	created  int
	repeats  workload.Repeats
	// victim is a pod whose writes are all refused; empty for none.
	victim string
}

// No order of answers keeps a pod out of traffic for good, or creates an instance twice: success, conflict, refusal, a
// timeout before or after the write was made, and the death of the process in between.
func TestAnyAnswers(t *testing.T) {
	for _, m := range []mode{interchangeable, slots, groups, groupsInSlots} {
		t.Run(string(m), func(t *testing.T) {
			for seed := range uint64(40) {
				w := newWorkshop(t, m, seed)
				w.converge()
				for range 2 + w.random.IntN(8) {
					switch w.random.IntN(6) {
					case 0:
						w.replicas = 1 + w.random.IntN(4)
					case 1, 2:
						w.version = 1 + w.random.IntN(3)
					}
					w.pass(w.anyAnswer)
					w.runPods()
				}
				w.converge()
			}
		})
	}
}

// A pod whose writes are all refused stops no other instance.
func TestEachFailureIsItsOwn(t *testing.T) {
	for _, m := range []mode{interchangeable, slots, groups, groupsInSlots} {
		t.Run(string(m), func(t *testing.T) {
			for seed := range uint64(20) {
				w := newWorkshop(t, m, seed)
				w.replicas, w.budget = 3+w.random.IntN(2), 2
				w.converge()
				names := slices.Sorted(maps.Keys(w.pods))
				w.victim, w.version = names[w.random.IntN(len(names))], 2
				victim := w.instanceOf(w.pods[w.victim])
				for range 60 {
					w.pass(nil)
					w.runPods()
				}
				for name, pod := range w.pods {
					if w.instanceOf(pod) == victim {
						continue
					}
					if why := w.unsettled(pod); why != "" {
						t.Fatalf("seed %d: the writes of %s are refused, and pod %s %s\n%s", seed, w.victim, name, why, w.tail())
					}
				}
				w.victim = ""
				w.converge()
			}
		})
	}
}

func newWorkshop(t *testing.T, m mode, seed uint64) *workshop {
	t.Helper()
	w := &workshop{server: newServer(t), seed: seed, random: rand.New(rand.NewPCG(seed, 7)), mode: m, version: 1}
	w.replicas, w.budget = 1+w.random.IntN(4), 1+w.random.IntN(2)
	w.strategy = workload.InPlaceIfPossible
	if w.random.IntN(3) == 0 {
		w.strategy = workload.Recreate
	}
	return w
}

func (w *workshop) isGroups() bool { return w.mode == groups || w.mode == groupsInSlots }

// instanceOf is the name of the instance of a pod.
func (*workshop) instanceOf(pod *corev1.Pod) string { return pod.Labels["instance"] }

func (w *workshop) revision(version int) workload.Revision {
	w.Helper()
	name, image := fmt.Sprintf("web-%d", version), fmt.Sprintf("web:%d", version)
	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{
		"leader": template(image), "worker": template(image),
	})
	if !w.isGroups() {
		data, err = revision.Encode(template(image))
	}
	if err != nil {
		w.Fatal(err)
	}
	return workload.Revision{Name: name, Data: data}
}

func (w *workshop) input() workload.Input {
	w.Helper()
	in := workload.Input{
		Scale: scale.Input{
			Now: w.now, Limits: scale.Limits{Replicas: int32(w.replicas), MaxUnavailable: int32(w.budget)},
		},
		Instances: workload.Groups(w.all(), "instance", "member"),
		Update:    w.revision(w.version), Strategy: w.strategy, Repeats: w.repeats,
	}
	in.Current = in.Update
	for version := 1; version <= 3; version++ {
		in.Revisions = append(in.Revisions, w.revision(version))
	}
	if w.isGroups() {
		in.Members = []workload.Member{
			{Name: "l", Role: "leader"}, {Name: "w1", Role: "worker"}, {Name: "w2", Role: "worker"},
		}
	}
	if w.mode == slots || w.mode == groupsInSlots {
		in.Scale.Slots = []string{}
		for i := range w.replicas {
			in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("slot-%d", i))
		}
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, _ error) {
		for _, c := range creations {
			w.created++
			instance := c.Instance + c.Slot
			if instance == "" {
				instance = fmt.Sprintf("new-%d", w.created)
			}
			spec, err := in.Template(c)
			if err != nil {
				return nil, err
			}
			pod := ready(instance+c.Member.Name, c.Revision, spec.Spec.Containers[0].Image)
			pod.UID += types.UID(fmt.Sprint(w.created))
			pod.Labels["instance"], pod.Labels["member"] = instance, c.Member.Name
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			all = append(all, []write.Object{pod})
		}
		return all, nil
	}
	return in
}

// pass makes a pass whose writes are answered in an order by chance. A nil answer makes each write.
func (w *workshop) pass(answer func(*workload.Write) (before, after error)) *workload.Pass {
	w.Helper()
	pass, err := workload.Plan(w.input())
	if err != nil {
		w.Fatalf("seed %d: %v", w.seed, err)
	}
	disrupts := pass.Disrupts()
	dies := -1
	if answer != nil && w.random.IntN(3) == 0 {
		dies = w.random.IntN(12)
	}
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for len(writes) > 0 {
			if dies--; dies == 0 {
				return pass
			}
			k := w.random.IntN(len(writes))
			one := writes[k]
			writes = slices.Delete(slices.Clone(writes), k, k+1)
			if begins := []workload.Action{
				workload.ActionDelete, workload.ActionMark, workload.ActionUnready,
				workload.ActionUpdate,
			}; !disrupts && !w.isGroups() && slices.Contains(begins, one.Action) {
				w.Fatalf("seed %d: a pass that disrupts no instance makes %s", w.seed, one)
			}
			object, err := w.answer(one, answer)
			writes = append(writes, pass.Answer(w.now, one, object, err)...)
		}
	}
	w.repeats = pass.Repeats()
	return pass
}

var errTimeout = fmt.Errorf("no answer: %w", context.DeadlineExceeded)

// anyAnswer is an answer by chance.
func (w *workshop) anyAnswer(*workload.Write) (before, after error) {
	switch w.random.IntN(8) {
	case 0:
		return outdated(), nil
	case 1:
		return refused(), nil
	case 2:
		return errTimeout, nil
	case 3:
		return nil, errTimeout
	}
	return nil, nil
}

// answer makes a write, unless the answer is an error before.
func (w *workshop) answer(
	one *workload.Write, answer func(*workload.Write) (before, after error),
) (*corev1.Pod, error) {
	w.Helper()
	var before, after error
	if answer != nil {
		before, after = answer(one)
	}
	if w.victim != "" && one.Object.GetName() == w.victim {
		before = refused()
	}
	if before != nil {
		return nil, before
	}
	if before := w.check(one); before != nil {
		return nil, before
	}
	pod, err := w.send(one)
	if after = errors.Join(err, after); after != nil {
		return nil, after
	}
	return pod, nil
}

// check returns the error of a write that does not fit the pod as it is: a write before has no answer, and was made.
func (w *workshop) check(one *workload.Write) error {
	w.Helper()
	pod := w.pods[one.Object.GetName()]
	switch one.Verb {
	case write.Create:
		w.checkCreation(one)
		return nil
	case write.Patch:
		data, err := one.Data()
		if err != nil {
			w.Fatal(err)
		}
		if pod != nil {
			if _, err := apply(pod, data); err != nil {
				return outdated()
			}
		}
	}
	if pod == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, one.Object.GetName())
	}
	return nil
}

// checkCreation fails where an instance is created twice.
func (w *workshop) checkCreation(one *workload.Write) {
	w.Helper()
	if w.pods[one.Pod.Name] != nil {
		w.Fatalf("seed %d: pod %s is created twice\n%s", w.seed, one.Pod.Name, w.tail())
	}
	if one.Instance != "" || w.mode == slots || w.mode == groupsInSlots {
		return // the name is that of its only place
	}
	leaders := 1
	for _, pod := range w.pods {
		if member := pod.Labels["member"]; member == "" || member == "l" { // what is left without a leader is on its way out
			leaders++
		}
	}
	if leaders > w.replicas {
		w.Fatalf("seed %d: %d instances of %d are created\n%s", w.seed, leaders, w.replicas, w.tail())
	}
}

// runPods has nodes run what the specs say.
func (w *workshop) runPods() {
	w.now = w.now.Add(time.Second)
	for name, pod := range w.pods {
		runs := ready(name, "", pod.Spec.Containers[0].Image).Status
		runs.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
		})
		is := corev1.ConditionFalse
		if slices.ContainsFunc(runs.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kruise.InPlaceUpdateReady && c.Status == corev1.ConditionTrue
		}) {
			is = corev1.ConditionTrue
		}
		runs.Conditions = append(runs.Conditions, corev1.PodCondition{
			Type: corev1.ContainersReady, Status: corev1.ConditionTrue,
		}, corev1.PodCondition{Type: corev1.PodReady, Status: is})
		fresh := pod.DeepCopy()
		fresh.Status = runs
		w.pods[name] = fresh
	}
}

// converge makes passes without faults until all pods serve at the wanted revision.
func (w *workshop) converge() {
	w.Helper()
	why := ""
	for range 120 {
		if err := workload.Err(w.pass(nil).Failures()); err != nil {
			w.Fatalf("seed %d: %v", w.seed, err)
		}
		w.runPods()
		if why = w.missing(); why == "" {
			return
		}
	}
	w.Fatalf("seed %d: %s\n%s", w.seed, why, w.tail())
}

// missing is what is not yet as wanted.
func (w *workshop) missing() string {
	want := w.replicas
	if w.isGroups() {
		want *= 3
	}
	if len(w.pods) != want {
		return fmt.Sprintf("%d pods, want %d", len(w.pods), want)
	}
	for name, pod := range w.pods {
		if why := w.unsettled(pod); why != "" {
			return "pod " + name + " " + why
		}
	}
	return ""
}

func (w *workshop) unsettled(pod *corev1.Pod) string {
	if label := pod.Labels[kruise.PodRevisionLabelKey]; label != fmt.Sprintf("web-%d", w.version) {
		return "is at " + label
	}
	if image := pod.Spec.Containers[0].Image; image != fmt.Sprintf("web:%d", w.version) {
		return "runs " + image
	}
	if !workload.IsReady(pod) {
		return "is out of traffic"
	}
	return ""
}

// tail are the latest writes.
func (w *workshop) tail() string {
	return strings.Join(w.sent[max(0, len(w.sent)-30):], "\n")
}

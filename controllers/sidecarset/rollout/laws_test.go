package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/scale"
)

// strategy is any that admission lets through, and a few more.
func (r *random) strategy(s *v1beta1.SidecarSet) {
	u := &s.Spec.UpdateStrategy
	u.Partition = amount(pick(r, "0", "0", "1", "5", "30%", "99%", "100%", "200%"))
	u.MaxUnavailable = amount(pick(r, "1", "3", "20%", "100%", "0", "150%"))
	switch r.Intn(4) {
	case 0:
		u.PriorityStrategy = &kruise.UpdatePriorityStrategy{OrderPriority: []kruise.UpdatePriorityOrderTerm{
			{OrderedKey: "k"}, {OrderedKey: "l"},
		}}
	case 1:
		weigh := func(weight int32, value string) kruise.UpdatePriorityWeightTerm {
			return kruise.UpdatePriorityWeightTerm{
				Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"k": value}},
			}
		}
		u.PriorityStrategy = &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
			weigh(10, "1"), weigh(20, "2"), weigh(10, "2"),
		}}
	}
	if r.once(2) {
		u.ScatterStrategy = pick(r,
			kruise.UpdateScatterStrategy{{Key: "k", Value: "1"}},
			kruise.UpdateScatterStrategy{{Key: "k", Value: "*"}},
			kruise.UpdateScatterStrategy{{Key: "k", Value: "*"}, {Key: "l", Value: "*"}, {Key: "k", Value: "*"}},
			kruise.UpdateScatterStrategy{{Key: "k", Value: "1"}, {Key: "l", Value: "*"}},
			kruise.UpdateScatterStrategy{{Key: "none", Value: "*"}})
	}
	if r.once(4) {
		u.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"l": "1"}}
	}
}

// TestOracle compares the choice with that of the oracle, and tries the laws.
func TestOracle(t *testing.T) {
	chosen := 0
	eachCase(t, 300, func(r *random) string {
		before := sidecarSet("s", cold("mesh", "mesh:1"))
		stale := edited(before, env)
		set := edited(before, image("mesh:2"), r.strategy)
		subjects := r.subjects(before, stale, set, r.Intn(25))
		var pods, given []*corev1.Pod
		for i := range subjects {
			s := &subjects[i]
			s.selected = set.Spec.UpdateStrategy.Selector == nil || s.pod.Labels["l"] == "1"
			pods, given = append(pods, s.pod), append(given, s.pod.DeepCopy())
		}
		pass, err := rollout.Plan(input(set, pods...))
		if err != nil {
			return err.Error()
		}
		plan := pass.Result()
		if diff := cmp.Diff(oracle(set, subjects), updated(plan)); diff != "" {
			return "the oracle chooses otherwise (-oracle +plan):\n" + diff
		}
		if diff := cmp.Diff(given, pods); diff != "" {
			return "the input was changed:\n" + diff
		}
		r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		again, err := rollout.Plan(input(set, pods...))
		if diff := cmp.Diff(plan, again.Result()); diff != "" || err != nil {
			return fmt.Sprintf("the order of the pods matters: %v\n%s", err, diff)
		}
		chosen += len(plan.Updates)
		return continued(set, pods, pass, r)
	})
	if chosen == 0 {
		t.Error("no pod was ever updated")
	}
}

// continued carries out some of a plan, and asks whether the next one goes on from there.
func continued(set *v1beta1.SidecarSet, pods []*corev1.Pod, pass *rollout.Pass, r *random) string {
	plan := pass.Result()
	done := map[string]bool{}
	for _, changes := range [][]*rollout.Change{plan.Updates, plan.Marks} {
		for _, c := range changes {
			if c.Action == rollout.ActionUpdate && r.once(2) {
				continue
			}
			done[c.Pod.Name] = c.Action == rollout.ActionUpdate
			i := slices.Index(pods, c.Pod)
			pods[i] = finished(pass, c)[c.Pod.UID]
		}
	}
	following, err := rollout.Plan(input(set, pods...))
	if err != nil {
		return err.Error()
	}
	next := following.Result()
	if n := len(next.Marks); n != 0 {
		return fmt.Sprintf("%d conditions are written again", n)
	}
	old := next.Status.MatchedPods - next.Status.UpdatedPods
	kept, err := scale.Partition(set.Spec.UpdateStrategy.Partition, next.Status.MatchedPods)
	if err != nil || len(next.Updates) > 0 && old-int32(len(next.Updates)) < kept {
		return fmt.Sprintf("%d of %d old pods are updated, %d are to stay (%v)", len(next.Updates), old, kept, err)
	}
	for _, name := range updated(next) {
		if done[name] {
			return fmt.Sprintf("%s is updated twice", name)
		}
	}
	return ""
}

// TestConverged: pods that are as the set wants them are not written.
func TestConverged(t *testing.T) {
	eachCase(t, 50, func(r *random) string {
		set := sidecarSet("s", cold("mesh", "mesh:1"), hot("agent", "agent:1"), r.strategy)
		var pods []*corev1.Pod
		for i := range r.Intn(10) {
			pods = append(pods, podOf(fmt.Sprint("p", i), set))
		}
		pass, err := rollout.Plan(input(set, pods...))
		if plan := pass.Result(); err != nil || len(plan.Updates)+len(plan.Resets)+len(plan.Marks)+len(plan.Notes) != 0 {
			return fmt.Sprintf("there is nothing to do, but: %+v (%v)", plan, err)
		}
		return ""
	})
}

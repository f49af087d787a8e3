package scale_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/scale"
)

// running is a pod that is ready since a while.
func running(name string, since time.Duration) *corev1.Pod {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: "node-of-" + name},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-since))},
		}},
	}
}

// tale tells a plan in lines.
func tale(plan scale.Result, err error) string {
	lines := []string{}
	line := func(words ...any) { lines = append(lines, strings.TrimSpace(fmt.Sprintln(words...))) }
	if err != nil {
		line(err)
	}
	for _, b := range plan.Create {
		line("create", b.Slot, "updated:", b.Updated)
	}
	for _, i := range plan.Delete {
		line("delete", i.Name)
	}
	for _, i := range plan.Update {
		line("update", i.Name)
	}
	for _, n := range plan.Notes {
		line(n.Code, cmp.Or(n.Object, "-"), n.Text)
	}
	if plan.RequeueAfter > 0 {
		line("again in", plan.RequeueAfter)
	}
	return strings.Join(lines, "\n")
}

func ExamplePlan() {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	var instances []scale.Instance
	for _, name := range []string{"a", "b", "c", "d"} {
		pod := running(name, time.Hour)
		instances = append(instances, scale.Instance{Name: name, Pods: []*corev1.Pod{pod}, Updated: name == "d"})
	}
	limits := scale.Limits{Replicas: 4, Partition: 1, MaxUnavailable: 1, MaxUnavailableScaling: ptr.To[int32](10)}
	fmt.Println(tale(scale.Plan(scale.Input{Now: noon, Instances: instances, Limits: limits})))

	limits.Replicas = 3
	fmt.Println(tale(scale.Plan(scale.Input{Now: noon, Instances: instances, Limits: limits})))
	// Output:
	// update a
	// UpdateLimited - 1 instance waits to be updated (unavailable: 1, at most: 1)
	// Partition - 1 instance waits at the old revision, as the partition says
	// delete a
	// ScaleIn a too many, and only its name ranks it
}

// A leader and its workers are one instance. It is not whole while a worker is missing.
func ExamplePlan_groups() {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	instances := []scale.Instance{
		{
			Name: "g0",
			Size: 3,
			Pods: []*corev1.Pod{running("g0", time.Hour), running("g0-1", time.Hour), running("g0-2", time.Minute)},
		},
		{Name: "g1", Size: 3, Pods: []*corev1.Pod{running("g1", time.Hour), running("g1-1", time.Hour)}},
		{
			Name: "g2",
			Size: 3,
			Pods: []*corev1.Pod{running("g2", time.Hour), running("g2-1", time.Hour), running("g2-2", time.Hour)},
		},
	}
	limits := scale.Limits{Replicas: 2, Partition: 2, MaxUnavailable: 1, MaxUnavailableScaling: ptr.To[int32](10)}
	fmt.Println(tale(scale.Plan(scale.Input{Now: noon, Instances: instances, Limits: limits})))
	// Output:
	// delete g1
	// ScaleIn g1 too many, and it is not available
}

// The ordinals of a StatefulSet are slots. The first two keep the old revision, also when they come back.
func ExamplePlan_slots() {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	instances := []scale.Instance{
		{Name: "db-0", Pods: []*corev1.Pod{running("db-0", time.Hour)}},
		{Name: "db-2", Pods: []*corev1.Pod{running("db-2", time.Hour)}},
		{Name: "db-3", Pods: []*corev1.Pod{running("db-3", 20*time.Second)}},
	}
	input := scale.Input{
		Now: noon, Instances: instances, MinReadySeconds: 30,
		Slots:  []string{"db-0", "db-1", "db-2", "db-3"},
		Limits: scale.Limits{Partition: 2, MaxUnavailable: 1, MaxUnavailableScaling: ptr.To[int32](10)},
	}
	fmt.Println(tale(scale.Plan(input)))

	input.Instances = append(instances, scale.Instance{Name: "db-1", Pods: []*corev1.Pod{running("db-1", time.Minute)}})
	fmt.Println(tale(scale.Plan(input)))
	// Output:
	// create db-1 updated: false
	// again in 10s
	// update db-3
	// UpdateLimited - 1 instance waits to be updated (unavailable: 1, at most: 1)
	// Partition - 2 instances wait at the old revision, as the partition says
	// again in 10s
}

// A surge instance comes before the first slot is updated, and makes up for the slot.
func ExamplePlan_surge() {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	input := scale.Input{
		Now:        noon,
		Slots:      []string{"g-0", "g-1"},
		SurgeSlots: []string{"g-2"},
		Limits:     scale.Limits{MaxSurge: 1},
		Instances: []scale.Instance{
			{Name: "g-0", Pods: []*corev1.Pod{running("g-0", time.Hour)}},
			{Name: "g-1", Pods: []*corev1.Pod{running("g-1", time.Hour)}},
		},
	}
	fmt.Println(tale(scale.Plan(input)))

	extra := scale.Instance{Name: "g-2", Pods: []*corev1.Pod{running("g-2", time.Minute)}, Updated: true}
	input.Instances = append(input.Instances, extra)
	fmt.Println(tale(scale.Plan(input)))

	input.Instances[0].Updated, input.Instances[1].Updated = true, true
	fmt.Println(tale(scale.Plan(input)))
	// Output:
	// create g-2 updated: true
	// update g-1
	// UpdateLimited - 1 instance waits to be updated (unavailable: 1, at most: 1)
	// delete g-2
	// ScaleIn g-2 it is beyond the slots, and no update needs it
}

func ExampleAvailable() {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(scale.Available(running("a", time.Minute), 10, noon))
	fmt.Println(scale.Available(running("b", time.Second), 10, noon))
	// Output:
	// true 0s
	// false 9s
}

func ExampleBudget() {
	pods := []struct {
		name      string
		available bool
	}{{"a", true}, {"b", false}, {"c", true}, {"d", true}}
	b := scale.Budget{Max: 2, Unavailable: 1}
	for _, pod := range pods {
		if !b.Take(pod.available) {
			fmt.Println(pod.name, "and those after it wait")
			break
		}
		fmt.Println(pod.name, "goes")
	}
	// Output:
	// a goes
	// b goes
	// c and those after it wait
}

package pub_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/pub"
)

// A budget of 30% of 10 replicas has room for three disruptions.
func ExampleReview() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	budget := newBudget(maxUnavailable("30%"))
	counted := budget.Count(pods(10), pub.Policy{})
	budget.Status = pub.Recount(pub.Input{
		Budget: budget, Counts: counted, Total: pub.Total{Replicas: 10}, Now: now,
	}).Status
	for _, name := range []string{"web-0", "web-0", "web-1", "web-2", "web-3"} {
		v := pub.Review(budget, pub.Disruption{Pod: newPod(name), Operation: pub.Evict}, now)
		fmt.Println(name, v.Allowed, v.Reason)
		if v.Record != nil {
			budget = budget.Spend(*v.Record)
		}
	}
	// Output:
	// web-0 true Spent
	// web-0 true AlreadyRecorded
	// web-1 true Spent
	// web-2 true Spent
	// web-3 false Exhausted
}

// A toleration costs nothing, an image does.
func ExampleEffect() {
	before := newPod("web-0")
	tolerant, newer := before.DeepCopy(), before.DeepCopy()
	tolerant.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	newer.Spec.Containers[0].Image = "web:2"
	fmt.Printf("%q %q\n", pub.Effect(before, tolerant, "", pub.Policy{}), pub.Effect(before, newer, "", pub.Policy{}))
	// Output: "" "UPDATE"
}

// A budget with a target comes before one that selects the pod.
func ExampleMatch() {
	budgets := []pub.Budget{newBudget(), read(newObject("web-target", targeted("Deployment", "web")))}
	chain := pub.Chain{
		{Group: "apps", Kind: "ReplicaSet", Name: "web-5f7"}, {Group: "apps", Kind: "Deployment", Name: "web"},
	}
	fmt.Println(pub.Match(newPod("web-0"), chain, budgets).Name)
	// Output: web-target
}

// One event of a pod changes the status without a look at the others.
func ExampleRecount() {
	budget := newBudget(minAvailable("80%"))
	counted := budget.Count(pods(10), pub.Policy{})
	in := pub.Input{
		Budget: budget,
		Counts: counted,
		Total:  pub.Total{Replicas: 10},
		Now:    time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
	}
	fmt.Println(pub.Recount(in).Status.UnavailableAllowed)
	counted.Set(newPod("web-3", unready), pub.Policy{})
	fmt.Println(pub.Recount(in).Status.UnavailableAllowed)
	// Output:
	// 2
	// 1
}

func ExampleRead() {
	_, notes := pub.Read(newObject("web", maxUnavailable("many")))
	fmt.Println(notes[0])
	// Output: FieldUnreadable web: spec.maxUnavailable must be a number or a percentage: "many", and is left out
}

func ExampleTotalOf() {
	fmt.Println(pub.TotalOf([]pub.Workload{{UID: "a", Replicas: 5}, {UID: "b", Replicas: 3}}, false).Replicas)
	// Output: 8
}

func ExampleOverlap() {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	present := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "app", Operator: metav1.LabelSelectorOpExists,
	}}}
	fmt.Println(pub.Overlap(web, present))
	// Output: true
}

func ExampleValidate() {
	for _, fault := range pub.Validate(newObject("web", maxUnavailable("120%")), nil) {
		fmt.Println(fault)
	}
	// Output: spec.maxUnavailable: Invalid value: "120%": must not be greater than 100%
}

package scale_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

func ExampleAmount() {
	up, _ := scale.Amount(intstr.FromString("33.3%"), 10, scale.RoundUp)
	down, _ := scale.Amount(intstr.FromString("33.3%"), 10, scale.RoundDown)
	_, err := scale.Amount(intstr.FromString("a third"), 10, scale.RoundUp)
	fmt.Println(up, down, err)
	// Output: 4 3 "a third" is no percentage: it does not end in %
}

func ExampleAmountOr() {
	n, err := scale.AmountOr(nil, math.MaxInt32, 10, scale.RoundUp)
	fmt.Println(n, err)
	// Output: 2147483647 <nil>
}

func ExamplePartition() {
	canary := intstr.FromString("99%")
	n, err := scale.Partition(&canary, 20)
	fmt.Println(n, err)
	// Output: 19 <nil>
}

func ExampleFailureTolerance() {
	for _, members := range []int32{1, 2, 3, 4, 5} {
		fmt.Println(members, scale.FailureTolerance(members))
	}
	// Output:
	// 1 0
	// 2 0
	// 3 1
	// 4 1
	// 5 2
}

func ExampleDiffer() {
	old := scale.Count{Available: 5}
	d := scale.Differ(old, scale.Count{}, scale.Limits{Replicas: 5, MaxUnavailable: 1, MaxSurge: 2})
	fmt.Println("create", d.Create, "update", d.Update, "with", d.UpdateUnavailable, "unavailable")
	// Output: create 2 update 5 with 1 unavailable
}

func ExampleStanding() {
	pending, running := &corev1.Pod{}, &corev1.Pod{}
	running.Spec.NodeName, running.Status.Phase = "node-1", corev1.PodRunning
	fmt.Println(slices.Compare(scale.Standing(pending), scale.Standing(running)) < 0)
	// Output: true
}

func ExamplePrioritise() {
	pods := []string{"db-1", "db-10", "db-2"}
	strategy := &kruise.UpdatePriorityStrategy{OrderPriority: []kruise.UpdatePriorityOrderTerm{{OrderedKey: "name"}}}
	err := scale.Prioritise(pods, func(name string) map[string]string { return map[string]string{"name": name} }, strategy)
	fmt.Println(pods, err)
	// Output: [db-10 db-2 db-1] <nil>
}

func ExampleScatter() {
	pods := []string{"a", "b", "c", "d", "master-1", "master-2"}
	labelsOf := func(name string) map[string]string {
		return map[string]string{"role": strings.TrimRight(name, "-0123456789")}
	}
	fmt.Println(scale.Scatter(pods, pods, labelsOf, kruise.UpdateScatterStrategy{{Key: "role", Value: "master"}}))
	// Output: [master-1 a b c d master-2]
}

func ExampleResolveFenceposts() {
	tenth := intstr.FromString("10%")
	surge, unavailable, err := scale.ResolveFenceposts(nil, &tenth, 6)
	fmt.Println(surge, unavailable, err)
	// Output: 0 1 <nil>
}

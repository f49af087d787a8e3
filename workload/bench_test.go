package workload_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/growth"
	"github.com/kruisekit/kruisekit/workload"
)

// crowd is n pods at the first revision, on the way to the second where they are updated.
func crowd(tb testing.TB, n int, slots, update bool) workload.Input {
	tb.Helper()
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = ready(fmt.Sprintf("web-%05d", i), "web-1", "web:1")
	}
	in := workload.Input{
		Scale:     scale.Input{Now: noon, Limits: scale.Limits{Replicas: int32(n), MaxUnavailable: int32(n)}},
		Instances: workload.Pods(pods),
		Update:    rev(tb, "web-1", "web:1"),
		Strategy:  workload.InPlaceIfPossible,
	}
	in.Current = in.Update
	if update {
		in.Update = rev(tb, "web-2", "web:2")
	}
	if slots {
		for _, pod := range pods {
			in.Scale.Slots = append(in.Scale.Slots, pod.Name)
		}
	}
	return in
}

// refuse makes a pass whose writes are all refused, so that only planning and answering is measured.
func refuse(tb testing.TB, in workload.Input) (writes int) {
	tb.Helper()
	pass, err := workload.Plan(in)
	if err != nil {
		tb.Fatal(err)
	}
	for next := pass.Next(); len(next) > 0; next = pass.Next() {
		for _, w := range next {
			writes++
			pass.Answer(noon, w, nil, refused())
		}
	}
	return writes
}

// Ten times the pods cost about ten times as much, also where each has its slot and each is written.
func TestPassesGrowWithThePods(t *testing.T) {
	const n, times = 200, 10
	for _, slots := range []bool{false, true} {
		if writes := refuse(t, crowd(t, times*n, slots, true)); writes != times*n {
			t.Fatalf("slots %t: %d writes, want one for each of %d pods", slots, writes, times*n)
		}
		growth.Linear(t, n, times, func(n int) func() {
			in := crowd(t, n, slots, true)
			return func() { refuse(t, in) }
		})
	}
}

package workload_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// One pass over two pods, of which one may be unavailable. The answers are those of an API server.
func ExamplePlan() {
	encode := func(image string) []byte {
		data, _ := revision.Encode(template(image))
		return data
	}
	pods := []*corev1.Pod{ready("web-a", "web-1", "web:1"), ready("web-b", "web-1", "web:1")}
	pass, err := workload.Plan(workload.Input{
		Scale:     scale.Input{Now: time.Now(), Limits: scale.Limits{Replicas: 2, MaxUnavailable: 1}},
		Instances: workload.Pods(pods),
		Update:    workload.Revision{Name: "web-2", Data: encode("web:2")},
		Current:   workload.Revision{Name: "web-1", Data: encode("web:1")},
		Strategy:  workload.InPlaceIfPossible,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for _, w := range writes {
			fmt.Println(w.Action, w.Object.GetName(), w.Subresource)
		}
	}
	for _, n := range pass.Notes() {
		fmt.Println(n)
	}
	// Output:
	// Unready web-a status
	// UpdateLimited: 1 instance waits to be updated (unavailable: 1, at most: 1)
}

package workload_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// One group of a router and three workers, of which one may be unavailable. The router stays in traffic: only the
// workers change.
func ExampleGroup() {
	encode := func(worker string) []byte {
		data, _ := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{
			"router": template("web:1"), "worker": template(worker),
		})
		return data
	}
	pod := func(member string) workload.Pod {
		return workload.Pod{Pod: ready("g-"+member, "web-1", "web:1"), Member: member}
	}
	pass, err := workload.Plan(workload.Input{
		Scale: scale.Input{Now: time.Now(), Limits: scale.Limits{Replicas: 1, MaxUnavailable: 1}},
		Instances: []workload.Instance{
			{Name: "g", Pods: []workload.Pod{pod("r"), pod("w1"), pod("w2"), pod("w3")}},
		},
		Members: []workload.Member{
			{Name: "r", Role: "router"},
			{Name: "w1", Role: "worker"},
			{Name: "w2", Role: "worker"},
			{Name: "w3", Role: "worker"},
		},
		Group: workload.Group{
			Traffic: workload.TrafficEach,
			Roles:   []workload.Role{{Name: "router"}, {Name: "worker", MaxUnavailable: ptr.To[int32](1)}},
		},
		Update:   workload.Revision{Name: "web-2", Data: encode("web:2")},
		Current:  workload.Revision{Name: "web-1", Data: encode("web:1")},
		Strategy: workload.InPlaceIfPossible,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for _, w := range writes {
			fmt.Println(strings.TrimSpace(fmt.Sprintln(w.Action, w.Object.GetName(), w.Subresource)))
		}
	}
	for _, n := range pass.Notes() {
		fmt.Println(n)
	}
	// Output:
	// Update g-r
	// Unready g-w1 status
	// PodsUpdateLimited g: waits to be updated: 1 pods of role worker are unavailable, and 1 may be
}

package rollout_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

// Three pods have a set, whose image changes.
func ExampleCompute() {
	before := sidecarSet("mesh", cold("proxy", "proxy:1"))
	pods := []*corev1.Pod{podOf("a", before), podOf("b", before), podOf("c", before)}
	set := edited(before, image("proxy:2"), partition("1"))

	plan, err := rollout.Compute(rollout.Input{Set: set, Revision: "mesh-2", Pods: pods, Now: noon()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range plan.Update {
		fmt.Println(w.Pod.Name, w.Images)
	}
	for _, n := range plan.Notes {
		fmt.Println(n.Code+":", n.Text)
	}
	// Output:
	// a map[proxy:proxy:2]
	// Partition: 1 pod waits to be updated: the partition keeps as many
	// UpdateLimited: 1 pod waits to be updated (updated and not ready: 1, at most: 1)
}

// The status of a set is counted without a plan, too.
func ExampleCount() {
	before := sidecarSet("mesh", cold("proxy", "proxy:1"))
	set := edited(before, image("proxy:2"))
	status, err := rollout.Count(rollout.Input{Set: set, Pods: []*corev1.Pod{podOf("a", before), podOf("b", set)}})
	fmt.Println(status.MatchedPods, status.UpdatedPods, status.ReadyPods, status.UpdatedReadyPods, err)
	// Output: 2 1 2 1 <nil>
}

// An index of pods by their sets needs no more than this.
func ExampleSets() {
	fmt.Println(rollout.Sets(podOf("a", sidecarSet("mesh", cold("proxy", "proxy:1")), sidecarSet("logs", cold("tail", "tail:1")))))
	// Output: [logs mesh]
}

// A write is a JSON patch, which the API server refuses for another pod of the name.
func ExampleWrite_Patch() {
	before := sidecarSet("mesh", cold("proxy", "proxy:1"))
	w := rollout.Write{Pod: podOf("a", before), Images: map[string]string{"proxy": "proxy:2"}}
	patch, err := w.Patch()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(patch[:53]))
	fmt.Println(w.Apply().Spec.Containers[0].Image)
	// Output:
	// [{"op":"test","path":"/metadata/uid","value":"uid-a"}
	// proxy:2
}

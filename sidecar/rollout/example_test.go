package rollout_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

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

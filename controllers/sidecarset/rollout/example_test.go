package rollout_test

import (
	"fmt"

	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// An index of pods by their sets needs no more than this.
func ExampleSets() {
	fmt.Println(rollout.Sets(podOf("a", sidecarSet("mesh", cold("proxy", "proxy:1")),
		sidecarSet("logs", cold("tail", "tail:1")))))
	// Output: [logs mesh]
}

//go:build envtest

package podscope_test

import (
	"sync/atomic"

	"github.com/kruisekit/kruisekit/controllers/podscope"
)

// Without sets and configurations, whose events would start a pass, the entries are in force from the start: what waits
// for them waits for nothing.
func testInForce(b *bench) {
	var inForce atomic.Bool
	b.start(podscope.Options{InForce: func() { inForce.Store(true) }})
	b.until("the entries are not in force", inForce.Load)
}

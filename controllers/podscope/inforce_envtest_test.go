//go:build envtest

package podscope_test

import "sync/atomic"

// Without sets and configurations, whose events would start a pass, the entries are written and in force all the same:
// controllers wait for them.
func testInForce(b *bench) {
	var inForce atomic.Bool
	o := b.overURL()
	o.InForce = func() { inForce.Store(true) }
	b.start(o)
	b.until("the entries are not in force", inForce.Load)
}

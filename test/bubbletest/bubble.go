//go:build go1.25

// Package bubbletest runs tests in bubbles of testing/synctest, except under the race detector.
//
// Go 1.26 crashes about once in 35 runs of such tests under the detector: SIGSEGV on a system goroutine, while the
// timers of a bubble run. The code under test is not at fault, but a crash fails the level like any other failure. So
// the bubble is skipped there, and the unit level (hack/level) runs the packages that import this one a second time,
// without the detector. What such a package does with an API server is tested under the detector, at the pace of a real
// clock. Go 1.24 has no bubbles, and skips these tests, too.
//
// Remove this package when the runtime is mended: Test becomes synctest.Test, and Wait becomes synctest.Wait.
package bubbletest

import (
	"testing"
	"testing/synctest"
)

// Test runs a test in a bubble. Under the race detector it skips the test.
func Test(t *testing.T, test func(*testing.T)) {
	t.Helper()
	if raceDetector {
		t.Skip("the Go runtime crashes at times in a bubble under the race detector")
	}
	synctest.Test(t, test)
}

// Wait returns when every other goroutine of the bubble is blocked for good or by time.
func Wait() { synctest.Wait() }

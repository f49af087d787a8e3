//go:build !go1.25

package bubbletest

import "testing"

// Test skips the test.
func Test(t *testing.T, _ func(*testing.T)) {
	t.Helper()
	t.Skip("testing/synctest needs Go 1.25")
}

// Wait is for tests that Test does not skip.
func Wait() {}

package cluster

import (
	"context"
	"testing"
	"time"
)

// KillRuntime ends the container runtime of a node, the first being 1, as a crash does: containers go on running. What it
// returns starts the runtime again; so does the end of the test. For Real alone.
func (c *Cluster) KillRuntime(t testing.TB, node int) (start func()) {
	t.Helper()
	config := c.real(t)
	if err := config.KillRuntime(node); err != nil {
		t.Fatal(err)
	}
	started := false
	start = func() {
		t.Helper()
		if started {
			return
		}
		started = true
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := config.StartRuntime(ctx, node); err != nil {
			t.Errorf("start the container runtime of node %d again: %v", node, err)
		}
	}
	t.Cleanup(start)
	return start
}

// RuntimeSocket is where the container runtime of a node listens, the first being 1. For Real alone.
func (c *Cluster) RuntimeSocket(t testing.TB, node int) string {
	t.Helper()
	return c.real(t).RuntimeSocket(node)
}

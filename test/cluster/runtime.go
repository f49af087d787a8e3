package cluster

import (
	"context"
	"sync"
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
	return startAgain(t, "the container runtime of", node, config.StartRuntime)
}

// KillNode ends a node, the first being 1, as a power failure does: its kubelet, its container runtime and all containers end at once. What it
// returns starts the node again, and waits until the container runtime serves; so does the end of the test. For Real alone.
func (c *Cluster) KillNode(t testing.TB, node int) (start func()) {
	t.Helper()
	config := c.real(t)
	if err := config.KillNode(node); err != nil {
		t.Fatal(err)
	}
	return startAgain(t, "", node, config.StartNode)
}

// startAgain returns what starts a part of a node again, once, at the end of the test at the latest.
func startAgain(t testing.TB, what string, node int, do func(context.Context, int) error) (start func()) {
	t.Helper()
	var once sync.Once
	start = func() {
		t.Helper()
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			if err := do(ctx, node); err != nil {
				t.Errorf("start %s node %d again: %v", what, node, err)
			}
		})
	}
	t.Cleanup(start)
	return start
}

// RuntimeSocket is where the container runtime of a node listens, the first being 1. For Real alone.
func (c *Cluster) RuntimeSocket(t testing.TB, node int) string {
	t.Helper()
	return c.real(t).RuntimeSocket(node)
}

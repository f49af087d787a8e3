package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// KillRuntime ends the container runtime of a node, the first being 1, as a crash does: containers go on running. What
// it returns starts the runtime again; so does the end of the test. For Real alone.
func (c *Cluster) KillRuntime(t testing.TB, node int) (start func()) {
	t.Helper()
	config := c.real(t)
	if err := config.KillRuntime(node); err != nil {
		t.Fatal(err)
	}
	return startAgain(t, "the container runtime of", node, config.StartRuntime)
}

// KillNode ends a node, the first being 1, as a power failure does: its kubelet, its container runtime and all
// containers end at once. What it returns starts the node again, and waits until the container runtime serves; so does
// the end of the test. For Real alone.
func (c *Cluster) KillNode(t testing.TB, node int) (start func()) {
	t.Helper()
	config := c.real(t)
	if err := config.KillNode(node); err != nil {
		t.Fatal(err)
	}
	return startAgain(t, "", node, config.StartNode)
}

// StopAPIServer stops the API server as a stalled machine does: connections stay open, and no request gets an answer.
// What it returns lets the API server continue; so does the end of the test. For Real alone.
func (c *Cluster) StopAPIServer(t testing.TB) (resume func()) {
	t.Helper()
	config := c.real(t)
	if err := config.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	return undo(t, "continue the API server", func(context.Context) error { return config.ContinueAPIServer() })
}

// Partition drops what the address of a pod sends to the API server. What it returns heals the partition; so does the
// end of the test. For Real alone.
func (c *Cluster) Partition(t testing.TB, address string) (heal func()) {
	t.Helper()
	config := c.real(t)
	if err := config.Partition(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	return undo(t, "heal the partition of "+address, func(ctx context.Context) error { return config.Heal(ctx, address) })
}

// startAgain returns what starts a part of a node again, once, at the end of the test at the latest.
func startAgain(t testing.TB, what string, node int, do func(context.Context, int) error) (start func()) {
	t.Helper()
	return undo(t, fmt.Sprintf("start %s node %d again", what, node), func(ctx context.Context) error {
		return do(ctx, node)
	})
}

// undo returns what takes a fault back, once, at the end of the test at the latest.
func undo(t testing.TB, what string, do func(context.Context) error) func() {
	t.Helper()
	var once sync.Once
	back := func() {
		t.Helper()
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			if err := do(ctx); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	t.Cleanup(back)
	return back
}

// RuntimeSocket is where the container runtime of a node listens, the first being 1. For Real alone.
func (c *Cluster) RuntimeSocket(t testing.TB, node int) string {
	t.Helper()
	return c.real(t).RuntimeSocket(node)
}

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// KillNode ends a node as a power failure does: its kubelet, its container runtime and all containers end at once. What
// the node has below /var stays, what it has below /run goes.
func (c Config) KillNode(node int) error {
	// With its first process, the kernel ends the others. Those of the last two records stand outside, and wait for them.
	for _, name := range []string{Name(node), runtimeName(node), kubeletName(node)} {
		record, err := c.record(name)
		if err != nil {
			return err
		}
		if err := record.Stop(0); err != nil {
			return err
		}
	}
	return nil
}

// StartNode starts a node again, and returns when its container runtime serves.
func (c Config) StartNode(ctx context.Context, node int) error {
	if err := removeLink(ctx, link(node)); err != nil {
		return err
	}
	if err := c.emptyRun(node); err != nil {
		return fmt.Errorf("start %s: %w", Name(node), err)
	}
	// A kubelet looks for the containers of each cgroup that it finds, for seconds each.
	if err := RemoveCgroups(ctx, cgroup(node)); err != nil {
		return err
	}
	if err := makeCgroups(node); err != nil {
		return err
	}
	return c.boot(ctx, node)
}

// emptyRun removes what a node has below /run, except for its configuration.
func (c Config) emptyRun(node int) error {
	entries, err := os.ReadDir(c.inNode(node, "run"))
	if err != nil {
		return fmt.Errorf("empty /run: %w", err)
	}
	failures := []error{os.Remove(c.inNode(node, filepath.Join(own, "ready")))}
	for _, entry := range entries {
		if name := entry.Name(); name != filepath.Base(own) {
			failures = append(failures, os.RemoveAll(c.inNode(node, filepath.Join("run", name))))
		}
	}
	return errors.Join(append(failures, os.MkdirAll(c.inNode(node, "run/lock"), 0o755))...)
}

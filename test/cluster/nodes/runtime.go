//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
)

// RuntimeSocket is the path on the machine of the socket at which the container runtime of a node listens.
func (c Config) RuntimeSocket(node int) string { return c.inNode(node, socket) }

// KillRuntime ends the container runtime of a node as a crash does. Containers go on running.
func (c Config) KillRuntime(node int) error {
	record, err := c.record(runtimeName(node))
	if err != nil {
		return err
	}
	return record.Stop(0)
}

// StartRuntime starts the container runtime of a node again, and returns when it serves.
func (c Config) StartRuntime(ctx context.Context, node int) error {
	holder, err := c.record(Name(node))
	if err != nil {
		return err
	}
	containerd, err := c.runIn(holder.PID, program{
		node: node, name: "containerd", args: []string{"-c", own + "/containerd.toml"},
	})
	if err != nil {
		return err
	}
	version := enter(holder.PID, c.Programs["ctr"], "version")
	return containerd.Ready(ctx, func(ctx context.Context) error { return executeAll(ctx, version) })
}

func runtimeName(node int) string { return fmt.Sprintf("containerd-%d", node) }
func kubeletName(node int) string { return fmt.Sprintf("kubelet-%d", node) }

func (c Config) record(name string) (process.Record, error) { return recordIn(c.records(), name) }

// Trust lets all nodes pull images whose names begin with this host and port from there, over plain HTTP. The function
// that it returns takes that back.
func (c Config) Trust(host string) (distrust func() error, err error) {
	var dirs []string
	distrust = func() error {
		var failures []error
		for _, dir := range dirs {
			failures = append(failures, os.RemoveAll(dir))
		}
		return errors.Join(failures...)
	}
	for node := 1; node <= Count; node++ {
		dir := c.inNode(node, filepath.Join(own, "registries", host))
		dirs = append(dirs, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("trust %s: %w", host, err), distrust())
		}
		content := fmt.Sprintf(registryConfig, "http://"+host)
		if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(content), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("trust %s: %w", host, err), distrust())
		}
	}
	return distrust, nil
}

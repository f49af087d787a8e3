//go:build linux

package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// clearing bounds how long killed processes may hold on to cgroups.
const clearing = 30 * time.Second

// Down stops the cluster and removes all that it left on the machine. Without a cluster it does nothing.
func (c Config) Down(ctx context.Context) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := c.clear(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return fmt.Errorf("remove the state: %w", err)
	}
	return nil
}

// clear leaves nothing but files. All of it is done even if a part fails.
func (c Config) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearing)
	defer cancel()
	// Nodes have nothing to lose, and take all that is in them along. With them gone, the control plane ends in peace.
	failures := []error{
		process.StopRecorded(c.records(), 0),
		process.StopRecorded(plane.RecordDir(c.planeDir()), time.Second),
		c.killMarked(),
		removeCgroups(ctx),
		disconnect(ctx),
		c.unmount(),
		c.giveBack(),
	}
	return errors.Join(failures...)
}

// killMarked kills programs of the cluster that have no record: their starter was killed before it could write one, or
// a user removed the state directory.
func (c Config) killMarked() error {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, file := range environments {
		content, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(bytes.Split(content, []byte{0}), func(variable []byte) bool {
			return string(variable) == c.marker()
		}) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	return nil
}

// unmount removes mounts below the state directory. Those of nodes end with them, so there are none unless a user made
// them by hand; but removing files through a mount would be a disaster.
func (c Config) unmount() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var failures []error
	lines := strings.Split(string(mounts), "\n")
	slices.Reverse(lines) // the last mounted first
	for _, line := range lines {
		field := strings.Fields(line)
		if len(field) > 1 && strings.HasPrefix(field[1], c.Dir+"/") {
			if err := syscall.Unmount(field[1], syscall.MNT_DETACH); err != nil {
				failures = append(failures, fmt.Errorf("unmount %s: %w", field[1], err))
			}
		}
	}
	return errors.Join(failures...)
}

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
)

const cgroups = "/sys/fs/cgroup"

// hierarchies are the roots of the cgroup trees: one per controller (v1), one for all (v2), or both kinds.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.procs")); err == nil {
		return []string{cgroups}, nil
	}
	found, err := filepath.Glob(filepath.Join(cgroups, "*", "cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("list cgroup controllers: %w", err)
	}
	var roots []string
	for _, file := range found {
		root := filepath.Dir(file)
		// v1 systems have links from cpu,cpuacct to each.
		if info, err := os.Lstat(root); err == nil && info.IsDir() {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// makeCgroups makes a node's cgroup in each hierarchy.
func makeCgroups(node int) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, cgroup(node))
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make cgroup: %w", err)
		}
		if root == cgroups {
			for _, controller := range []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"} {
				// Kernels lack some of them, and kubelet names those that it misses.
				_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
			}
		}
		if err := weigh(dir); err != nil {
			return err
		}
		// A new v1 cpuset is empty, and nothing can run in it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(root, file))
			if err != nil || root == cgroups {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), value, 0o600); err != nil {
				return fmt.Errorf("fill cpuset: %w", err)
			}
		}
	}
	return nil
}

// weigh gives the pods of a node more than the share of one process, which is all that they would get of a machine on
// which many others run. The files are those of v2 and v1.
func weigh(dir string) error {
	for file, value := range map[string]string{"cpu.weight": "800", "cpu.shares": "8192"} {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err != nil {
			continue // of another controller, or version
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			return fmt.Errorf("weigh cgroup: %w", err)
		}
	}
	return nil
}

// removeCgroups removes the cgroups of all nodes.
func removeCgroups(ctx context.Context) error {
	var failures []error
	for node := 1; node <= Count; node++ {
		failures = append(failures, RemoveCgroups(ctx, cgroup(node)))
	}
	return errors.Join(failures...)
}

// RemoveCgroups kills what is left in the cgroups of a name, one in each hierarchy, and removes them.
func RemoveCgroups(ctx context.Context, name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	var failures []error
	for _, root := range roots {
		dir := filepath.Join(root, name)
		// Processes leave a cgroup some time after they are killed.
		failures = append(failures, process.Poll(ctx, func(context.Context) error { return removeTree(dir) }))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("remove cgroups: %w", err)
	}
	return nil
}

// removeTree removes a cgroup and those in it, which is done one by one and from below.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // whatever goes while we look has gone
	})
	if err != nil {
		return fmt.Errorf("walk %s: %w", root, err)
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		pids, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for pid := range strings.FieldsSeq(string(pids)) {
			if number, err := strconv.Atoi(pid); err == nil && number > 1 {
				_ = syscall.Kill(number, syscall.SIGKILL)
			}
		}
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	return nil
}

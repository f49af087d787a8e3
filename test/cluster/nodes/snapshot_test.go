//go:build nightly && linux

package nodes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster/nodes"
)

// snapshot is what a cluster could leave on the machine, by kind.
type snapshot map[string][]string

func take(t *testing.T, config nodes.Config) snapshot {
	t.Helper()
	s := snapshot{
		"network namespaces": lines(t, "ip", "netns"),
		"mounts":             fileLines(t, "/proc/self/mounts"),
		"routes":             lines(t, "ip", "route", "show", "table", "all"),
		"addresses":          lines(t, "ip", "-brief", "address"),
		"cgroups":            cgroups(t),
		"processes":          processes(t, config),
	}
	// Counters and dates change by themselves.
	volatile := regexp.MustCompile(`^#.*|\[\d+:\d+\]`)
	for _, line := range lines(t, "iptables-save") {
		s["iptables"] = append(s["iptables"], volatile.ReplaceAllString(line, ""))
	}
	for _, dir := range []string{
		"/run", "/run/containerd", "/run/netns", "/var/lib", "/var/log", "/opt", "/etc/cni", "/tmp/hostpath_pv",
	} {
		entries, _ := filepath.Glob(filepath.Join(dir, "*"))
		s["files"] = append(s["files"], entries...)
	}
	for _, name := range []string{
		"net/ipv4/ip_forward", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
		"kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		s["sysctls"] = append(s["sysctls"], name+": "+strings.Join(fileLines(t, "/proc/sys/"+name), ""))
	}
	return s
}

func lines(t *testing.T, name string, args ...string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

func fileLines(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// cgroups are the first below the root of each hierarchy, where those of nodes are. What is further below belongs to
// one of these, and others may be at work there.
func cgroups(t *testing.T) []string {
	t.Helper()
	const root = "/sys/fs/cgroup"
	first := filepath.Join(root, "*", "*", "cgroup.procs")
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil { // there is one hierarchy
		first = filepath.Join(root, "*", "cgroup.procs")
	}
	all, err := filepath.Glob(first)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// processes are those that run a program of the cluster's nodes, or that mention its state directory. Others come and
// go.
func processes(t *testing.T, config nodes.Config) []string {
	t.Helper()
	var ours []string
	for _, name := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "runc", "crane", "pause"} {
		ours = append(ours, config.Programs[name])
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		program, err := os.Readlink(link)
		if err != nil {
			continue // a kernel thread, or gone
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if err == nil && (slices.Contains(ours, program) || strings.Contains(string(command), config.Dir)) {
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

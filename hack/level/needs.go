package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// need is what tests use of the system.
type need struct {
	// debian is the package that has it.
	debian string
	// purpose is what goes without it.
	purpose purpose
	// present reports whether the system has it.
	present func() bool
}

// purpose of a need.
type purpose string

const (
	forRace    purpose = "the race detector of the unit level"
	forNodes   purpose = "the e2e level"
	forSeccomp purpose = "pods with a seccomp profile on real nodes"
	forTools   purpose = "the checks of make verify"
)

// parts of the tests that do not run without what serves a purpose. Real nodes need runc, which needs a C compiler, and
// whose seccomp the manager's pod asks for.
func (p purpose) parts() []purpose {
	switch p {
	case forRace:
		return []purpose{forRace, forNodes}
	case forSeccomp:
		return []purpose{forNodes}
	case forNodes, forTools:
	}
	return []purpose{p}
}

// needs of the tests, in the order in which they are installed.
func needs() []need {
	program := func(names ...string) func() bool {
		return func() bool {
			return slices.ContainsFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
		}
	}
	file := func(paths ...string) func() bool {
		return func() bool {
			return slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err == nil })
		}
	}
	return []need{
		{
			"ca-certificates", forTools,
			file("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"),
		},
		{"gcc", forRace, program("gcc", "cc", "clang")},
		// gcc only recommends the headers of the C library.
		{"libc6-dev", forRace, file("/usr/include/stdlib.h", "/usr/local/include/stdlib.h")},
		{"make", forTools, program("make", "gmake")},
		{"git", forTools, program("git")},
		{"pkg-config", forSeccomp, program("pkg-config", "pkgconf")},
		{"libseccomp-dev", forSeccomp, file("/usr/include/seccomp.h", "/usr/local/include/seccomp.h")},
		{"util-linux", forNodes, program("nsenter")},
		{"mount", forNodes, program("mount")},
		{"iproute2", forNodes, program("ip")},
		{"iptables", forNodes, program("iptables")},
		{
			"containernetworking-plugins", forNodes,
			file("/usr/lib/cni/bridge", "/usr/libexec/cni/bridge", "/opt/cni/bin/bridge"),
		},
		{"conntrack", forNodes, program("conntrack")},
		{"socat", forNodes, program("socat")},
		{"busybox-static", forNodes, file("/bin/busybox")},
		{"curl", forNodes, program("curl")},
		{"procps", forNodes, program("ps")},
	}
}

// missing returns the needs that the system does not have.
func missing(all []need) []need {
	return slices.DeleteFunc(slices.Clone(all), func(n need) bool { return n.present() })
}

// lacks reports whether one of the needs is for a purpose.
func lacks(absent []need, p purpose) bool {
	return slices.ContainsFunc(absent, func(n need) bool { return n.purpose == p })
}

// packagesOf returns the names of the packages, without the purpose where p is empty.
func packagesOf(absent []need, p purpose) []string {
	var names []string
	for _, n := range absent {
		if p == "" || n.purpose == p {
			names = append(names, n.debian)
		}
	}
	return names
}

// advice is one line about what is missing, and what will not be tested for that; empty where nothing is.
func advice(absent []need) string {
	if len(absent) == 0 {
		return ""
	}
	var without []string
	for _, p := range []purpose{forTools, forRace, forNodes, forSeccomp} {
		for _, part := range p.parts() {
			if lacks(absent, p) && !slices.Contains(without, string(part)) {
				without = append(without, string(part))
			}
		}
	}
	return fmt.Sprintf("missing (names of Debian packages): %s; not tested: %s",
		strings.Join(packagesOf(absent, ""), " "), strings.Join(without, ", "))
}

// installs reports whether this process can install packages: root on Debian or Ubuntu.
func installs() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && runtime.GOOS == "linux" && os.Geteuid() == 0
}

// prepare installs what is missing where it can, and returns what is still missing, with a line about that.
func prepare(ctx context.Context, out io.Writer) []need {
	absent := missing(needs())
	if len(absent) > 0 && installs() {
		fmt.Fprintf(out, "installing %s\n", strings.Join(packagesOf(absent, ""), " "))
		if err := install(packagesOf(absent, ""), aptGet(ctx)); err != nil {
			fmt.Fprintln(out, err)
		}
		absent = missing(needs())
	}
	if text := advice(absent); text != "" {
		fmt.Fprintln(out, text)
	}
	return absent
}

// install installs packages: all at once, and one by one where that fails, because a system may not have one of them.
func install(packages []string, apt func(args ...string) error) error {
	if err := apt("update", "-qq"); err != nil {
		return err
	}
	one := func(packages ...string) error {
		return apt(slices.Concat([]string{"install", "-qq", "-y", "--no-install-recommends"}, packages)...)
	}
	if one(packages...) == nil {
		return nil
	}
	var failures []error
	for _, p := range packages {
		failures = append(failures, one(p))
	}
	return errors.Join(failures...)
}

// aptGet runs apt-get, and returns what it prints where it fails.
func aptGet(ctx context.Context) func(args ...string) error {
	return func(args ...string) error {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run apt-get %s: %w: %s", args[0], err, bytes.TrimSpace(output))
		}
		return nil
	}
}

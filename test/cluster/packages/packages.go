package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package is a package of the system.
type Package struct {
	// Debian is its name.
	Debian string
	// Purpose is what does not work without the package.
	Purpose Purpose
	// Present reports whether the system has what is used of the package.
	Present func() bool
}

// Purpose of a package.
type Purpose string

// What packages are for.
const (
	// Race is also the C compiler that builds runc.
	Race    Purpose = "the race detector of the unit level"
	Nodes   Purpose = "the e2e level"
	Seccomp Purpose = "pods with a seccomp profile on real nodes"
	Tools   Purpose = "the checks of make verify"
)

// parts of the tests that do not run without the packages of a purpose. Real nodes need runc, which needs a C compiler.
// The pod of the manager needs a runc with seccomp.
func (p Purpose) parts() []Purpose {
	switch p {
	case Race:
		return []Purpose{Race, Nodes}
	case Seccomp:
		return []Purpose{Nodes}
	case Nodes, Tools:
	}
	return []Purpose{p}
}

// All returns the packages in the order in which they are installed.
func All() []Package {
	return []Package{
		{
			"ca-certificates", Tools,
			file("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"),
		},
		{"gcc", Race, program("gcc", "cc", "clang")},
		// gcc only recommends the headers of the C library.
		{"libc6-dev", Race, file("/usr/include/stdlib.h", "/usr/local/include/stdlib.h")},
		{"make", Tools, program("make", "gmake")},
		{"git", Tools, program("git")},
		{"pkg-config", Seccomp, program("pkg-config")},
		{"libseccomp-dev", Seccomp, seccompLibrary},
		{"util-linux", Nodes, func() bool { return program("nsenter")() && program("setpriv")() }},
		{"mount", Nodes, program("mount")},
		{"iproute2", Nodes, program("ip")},
		{"iptables", Nodes, program("iptables")},
		{"containernetworking-plugins", Nodes, func() bool { return NetworkPlugins() != "" }},
		{"busybox-static", Nodes, file(Busybox)},
	}
}

// ForNodes returns those of the packages that real nodes need, whose programs are built from source.
func ForNodes(all []Package) []Package {
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool { return !slices.Contains(p.Purpose.parts(), Nodes) })
}

// Busybox is the statically linked program that test images consist of.
const Busybox = "/bin/busybox"

// NetworkPlugins returns the directory of the network plugins; empty where there is none.
func NetworkPlugins() string {
	for _, dir := range []string{"/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"} {
		lacks := func(plugin string) bool { return !file(filepath.Join(dir, plugin))() }
		if !slices.ContainsFunc([]string{"bridge", "host-local", "loopback"}, lacks) {
			return dir
		}
	}
	return ""
}

// seccompLibrary reports whether a build finds libseccomp.
func seccompLibrary() bool {
	return exec.Command("pkg-config", "--exists", "libseccomp").Run() == nil //nolint:noctx // constant, and short
}

// program reports whether one of the programs is in the search path.
func program(names ...string) func() bool {
	return func() bool {
		return slices.ContainsFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	}
}

// file reports whether one of the files exists.
func file(paths ...string) func() bool {
	return func() bool {
		return slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err == nil })
	}
}

// Missing returns the packages that the system does not have.
func Missing(all []Package) []Package {
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool { return p.Present() })
}

// Lacks reports whether one of the packages is for a purpose.
func Lacks(absent []Package, p Purpose) bool { return len(Of(absent, p)) > 0 }

// Of returns the packages for a purpose.
func Of(all []Package, purpose Purpose) []Package {
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool { return p.Purpose != purpose })
}

// Names returns the names of the packages, separated by spaces.
func Names(all []Package) string {
	var names []string
	for _, p := range all {
		names = append(names, p.Debian)
	}
	return strings.Join(names, " ")
}

// Advice is one line that names the missing packages, and the tests that do not run without them; empty where none is
// missing.
func Advice(absent []Package) string {
	if len(absent) == 0 {
		return ""
	}
	var without []string
	for _, p := range []Purpose{Tools, Race, Nodes, Seccomp} {
		for _, part := range p.parts() {
			if Lacks(absent, p) && !slices.Contains(without, string(part)) {
				without = append(without, string(part))
			}
		}
	}
	return fmt.Sprintf("missing (names of Debian packages): %s; not tested: %s",
		Names(absent), strings.Join(without, ", "))
}

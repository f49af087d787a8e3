// Package release reports what a program was built from: on the command line, in a metric, and to the API server.
package release

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Release is a program in one version.
type Release struct {
	// Program is kruise-manager or kruise-daemon.
	Program string
	// Version is that of a tag, such as v0.1.0, or devel.
	Version string
}

// Of returns the release of a program. linked is what the linker has set; where it is empty, the version is that which
// go install records.
func Of(program, linked string) Release {
	if linked == "" {
		if info, ok := debug.ReadBuildInfo(); ok {
			linked = info.Main.Version
		}
	}
	if linked == "" || linked == "(devel)" {
		linked = "devel"
	}
	return Release{Program: program, Version: linked}
}

// Asked reports whether the command line asks for the version.
func Asked(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == "--version" || arg == "-version" })
}

// String returns the answer to --version.
func (r Release) String() string {
	return fmt.Sprintf("%s %s %s %s/%s", r.Program, r.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// UserAgent returns the program and its version as the API server logs them. The API server names the fields of the
// program by what stands before the slash, so that a new version owns the fields of the old one.
func (r Release) UserAgent() string { return r.Program + "/" + r.Version }

// Register exports the version as a metric with the value 1.
func (r Release) Register(name string, registerer prometheus.Registerer) error {
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name, Help: "1, with the version of the program and of Go as labels.",
		ConstLabels: prometheus.Labels{"version": r.Version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	err := registerer.Register(info)
	if registered := (prometheus.AlreadyRegisteredError{}); errors.As(err, &registered) {
		return nil // another manager in the same process, which only tests have
	}
	if err != nil {
		return fmt.Errorf("register metric: %w", err)
	}
	return nil
}

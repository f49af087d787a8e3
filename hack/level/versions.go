package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

// versions runs the envtest level on control planes of the offered minor versions of Kubernetes, or of those named, and
// the e2e level on nodes of the oldest and the newest of them.
func versions(ctx context.Context, arguments []string, out io.Writer) error {
	s := session{absent: packages.Missing(packages.All()), out: out}
	flags := flag.NewFlagSet("versions", flag.ContinueOnError)
	write := flags.Bool("write", false, "record the results in "+resultsFile+" and "+resultsPage)
	only := flags.String("level", "", "envtest or e2e; both by default")
	run := flags.String("run", "", "which tests to run, as for go test; all by default")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	cache, err := binaries.Open()
	if err != nil {
		return err
	}
	offered, err := cache.Offered()
	if err != nil {
		return err
	}
	m, err := readMatrix(resultsFile)
	if err != nil {
		return err
	}
	var failures []error
	for i, version := range offered {
		minor := binaries.Minor(version)
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), minor) {
			continue
		}
		// For this process, which holds the control plane, and for the tests.
		if err := os.Setenv(binaries.KubernetesVariable, minor); err != nil {
			return err
		}
		for _, level := range levelsOf(*only, i == 0 || i == len(offered)-1) {
			fmt.Fprintf(s.out, "\n##### Kubernetes %s, level %s\n", version, level)
			done, err := s.tally(ctx, level, *run)
			if err != nil {
				failures = append(failures, fmt.Errorf("%s of Kubernetes %s: %w", level, version, err))
				continue
			}
			m = m.record(version, level, done)
			failures = append(failures, done.err(version, level))
			if *write {
				failures = append(failures, m.write(resultsFile, resultsPage, offered))
			}
		}
	}
	fmt.Fprint(s.out, "\n", m.table(offered))
	return errors.Join(failures...)
}

// levelsOf are the levels to run on a version, or the one that is wanted of them.
func levelsOf(only string, nodes bool) []string {
	levels := []string{envtest}
	if nodes {
		levels = append(levels, e2e)
	}
	return slices.DeleteFunc(levels, func(level string) bool { return only != "" && level != only })
}

// tally runs a level, whose programs it builds first. Failed tests are part of the tally, and no error.
func (s session) tally(ctx context.Context, level, run string) (tally, error) {
	if err := build(ctx, s.out, subsetsOf(level)...); err != nil {
		return tally{}, err
	}
	if run != "" {
		s.flags = []string{"-run", run}
	}
	begin := time.Now()
	o := s.one(ctx, level)
	if o.notRun != "" {
		return tally{}, errors.New(o.notRun)
	}
	return tally{
		Date: begin.UTC().Format(time.DateOnly), Seconds: int(time.Since(begin).Seconds()), Run: run,
		Passed: o.passed, Failed: o.counts.failed, Skipped: o.skipped,
		Failures: o.failures, Flaky: o.flaky, Reasons: o.reasons,
	}, o.failed
}

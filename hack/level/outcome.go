package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

// outcome is what became of a level.
type outcome struct {
	level string
	counts
	// reasons why tests were skipped, with the number of tests.
	reasons map[string]int
	// notRun is why the level did not run at all.
	notRun string
	// failed is what failed beside tests.
	failed error
	// failures are the tests that failed: package and name.
	failures []string
	// flaky tests failed, and passed when they ran once more.
	flaky []string
	// remark is what a reader must know of a level that ran.
	remark string
}

// red reports whether the level must not count as passed. A cluster may be required: then a level without one is red.
func (o outcome) red(required bool) bool {
	return o.failed != nil || o.counts.failed > 0 || o.notRun != "" && required
}

// printOutcomes prints a line for each level and, below it, why tests were skipped.
func printOutcomes(out io.Writer, all []outcome) {
	fmt.Fprintf(out, "\n%-10s %7s %7s %7s\n", "level", "passed", "failed", "skipped")
	for _, o := range all {
		switch {
		case o.failed != nil:
			fmt.Fprintf(out, "%-10s FAILED: %v\n", o.level, o.failed)
		case o.notRun != "":
			fmt.Fprintf(out, "%-10s not run: %s\n", o.level, o.notRun)
		default:
			line := fmt.Sprintf("%-10s %7d %7d %7d  %s", o.level, o.passed, o.counts.failed, o.skipped, o.remark)
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
		for _, name := range o.flaky {
			fmt.Fprintf(out, "%-10s   flaky: %s\n", "", name)
		}
		for _, reason := range slices.SortedFunc(maps.Keys(o.reasons), func(a, b string) int {
			return cmp.Or(cmp.Compare(o.reasons[b], o.reasons[a]), cmp.Compare(a, b))
		}) {
			fmt.Fprintf(out, "%-10s   skipped %d: %s\n", "", o.reasons[reason], reason)
		}
	}
}

// place is the file and the line that go test prints before a message.
var place = regexp.MustCompile(`^\S+_test\.go:\d+: `)

// outcome sums up the report of a level.
func (r *report) outcome(level string) outcome {
	o := outcome{level: level, flaky: r.flaky, reasons: map[string]int{}}
	for _, p := range r.packages {
		c := p.count()
		if p.failed {
			for _, name := range p.failures() {
				o.failures = append(o.failures, p.name+" "+name)
			}
		}
		o.passed, o.counts.failed, o.skipped = o.passed+c.passed, o.counts.failed+c.failed, o.skipped+c.skipped
		for _, t := range p.tests {
			if t.action == "skip" {
				o.reasons[place.ReplaceAllString(t.last, "")]++
			}
		}
	}
	slices.Sort(o.failures)
	return o
}

// required reports whether a test without its cluster is a failure, as in CI.
func required() bool { return os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") == "1" }

// obstacle is why a level cannot run on this machine; empty if it can.
func obstacle(level string, absent []packages.Package) string {
	if level != e2e && level != nightly {
		return ""
	}
	return packages.Obstacle(absent)
}

// usualFlags are those of go test that a level runs with; flags of the caller come later.
func usualFlags(level string) []string {
	switch level {
	case envtest:
		return []string{"-p", "3", "-timeout", "20m"}
	case simulated:
		return []string{"-timeout", "20m"}
	case nightly:
		return []string{"-p", "1", "-timeout", "60m"} // of real nodes a machine can have one cluster
	case e2e: // tests on real nodes wait more than they compute, and those of containerd need no cluster
		return []string{"-p", "3", "-parallel", "16", "-timeout", "45m"}
	}
	return nil
}

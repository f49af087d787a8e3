package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// module is the path that the report leaves out of the names of packages.
const module = "github.com/kruisekit/kruisekit/"

// event is a line of go test -json, see go doc test2json.
type event struct {
	Time        time.Time
	Action      string
	Package     string
	Test        string
	Elapsed     float64
	Output      string
	ImportPath  string // of a package that is built
	FailedBuild string
}

// report prints the packages as they end, with the output of failed tests, and a table at the end.
type report struct {
	out     io.Writer
	verbose bool
	// raceless reports that the race detector is missing.
	raceless bool
	// flaky tests failed, and passed when they ran once more: package and name.
	flaky []string

	begin, end time.Time
	packages   map[string]*result
	running    int           // packages that run now
	since      time.Time     // of the last change of running
	building   time.Duration // without a running package
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{out: out, verbose: verbose, packages: map[string]*result{}}
}

// read takes all events of a run of go test.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	r.running, r.since = 0, time.Time{}
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(r.out, "%s", line) // of the go command itself
			} else {
				r.event(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (r *report) event(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(r.out, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &result{name: strings.TrimPrefix(e.Package, module), tests: map[string]*test{}}
		r.packages[e.Package] = p
	}
	r.time(e)
	switch {
	case e.Action == "output":
		p.print(e)
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
	case e.Test == "":
		r.packageEvent(p, e)
	default:
		p.testEvent(e)
	}
}

// time accounts for the time in which no package runs.
func (r *report) time(e event) {
	if r.begin.IsZero() {
		r.begin = e.Time
	}
	if e.Time.After(r.end) {
		r.end = e.Time
	}
	if e.Test != "" {
		return
	}
	change := 0
	switch e.Action {
	case "start":
		change = 1
	case "pass", "fail", "skip":
		change = -1
	}
	if change == 0 {
		return
	}
	if r.running == 0 && !r.since.IsZero() {
		r.building += e.Time.Sub(r.since)
	}
	r.running, r.since = max(r.running+change, 0), e.Time
}

func (r *report) packageEvent(p *result, e event) {
	switch e.Action {
	case "pass", "fail", "skip":
	default:
		return
	}
	p.seconds += e.Elapsed
	state := "ok  "
	if e.Action == "fail" {
		state, p.failed = "FAIL", true
		r.printFailure(p)
	}
	p.output.Reset()
	if e.Action == "skip" && len(p.tests) == 0 {
		return // no test files
	}
	took := fmt.Sprintf("%6.1fs", e.Elapsed)
	if p.cached {
		took = " cached"
	}
	fmt.Fprintf(r.out, "%s %s %s\n", state, took, p.name)
}

// printFailure prints the output of failed tests and, if the package ended before them, of unfinished ones.
func (r *report) printFailure(p *result) {
	if r.verbose {
		return // it stands above
	}
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		if t := p.tests[name]; name == top(name) && (t.action == "fail" || t.action == "") {
			fmt.Fprint(r.out, t.output.String())
		}
	}
	for line := range strings.Lines(p.output.String()) {
		if line != "FAIL\n" && line != "PASS\n" {
			fmt.Fprint(r.out, line)
		}
	}
}

// listed is the shortest time that is worth a line of the table.
const listed = 1.0

// summary prints what each package took, and how many tests there were.
func (r *report) summary(level string) {
	all := slices.SortedFunc(maps.Values(r.packages), func(a, b *result) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
	})
	var sum counts
	var packages, cached, quick int
	var seconds float64
	fmt.Fprintf(r.out, "\n seconds passed failed skipped  package\n")
	for _, p := range all {
		c := p.count()
		if c == (counts{}) && !p.failed {
			continue
		}
		packages++
		seconds += p.seconds
		sum.passed, sum.failed, sum.skipped = sum.passed+c.passed, sum.failed+c.failed, sum.skipped+c.skipped
		if p.cached {
			cached++
		}
		if p.seconds < listed && !p.failed {
			quick++
			continue
		}
		fmt.Fprintf(r.out, "%8.1f %6d %6d %7d  %s%s\n", p.seconds, c.passed, c.failed, c.skipped, p.name, p.longest())
	}
	if quick > 0 {
		fmt.Fprintf(r.out, "%8s %d packages below %.0f second, %d of all cached\n", "", quick, listed, cached)
	}
	for _, p := range all {
		for _, name := range slices.Sorted(maps.Keys(p.tests)) {
			if t := p.tests[name]; t.action == "skip" {
				fmt.Fprintf(r.out, "skipped: %s %s: %s\n", p.name, name, t.last)
			}
		}
	}
	fmt.Fprintf(r.out, "level %s: %d packages, %d tests passed, %d failed, %d skipped; took %.0f s, "+
		"packages ran for %.0f s, none ran for %.0f s\n",
		level, packages, sum.passed, sum.failed, sum.skipped, r.end.Sub(r.begin).Seconds(), seconds, r.building.Seconds())
}

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// retried is how many failed tests of a level run once more, not counting subtests. Where more fail, the change is at
// fault and not the machine.
const retried = 3

// retries reports whether failed tests run once more, as in CI, where one flaky test in a thousand must not hold a
// change back. The test still counts as flaky, its first output is printed, and the last lines of the run name it.
func retries() bool { return os.Getenv("KRUISEKIT_RETRY") == "1" }

// failures of a package are its failed tests: of one with subtests those that failed, and not the others, which may
// have taken most of the time of a level. It is not known what failed where a package names none.
func (p *result) failures() []string {
	has := func(name string) bool {
		t := p.tests[name] // the part of a name before a slash has no result of its own
		return t.action == "fail" || t.action == "" && (!t.parent || name == top(name))
	}
	var failed []string
	for name := range p.tests {
		if !has(name) || slices.ContainsFunc(slices.Collect(maps.Keys(p.tests)), func(sub string) bool {
			return strings.HasPrefix(sub, name+"/") && has(sub)
		}) {
			continue
		}
		failed = append(failed, name)
	}
	slices.Sort(failed)
	return failed
}

// pattern selects tests, and subtests by their path, with those that only differ in one part of it.
func pattern(tests []string) string {
	var levels [][]string
	for _, test := range tests {
		for depth, part := range strings.Split(test, "/") {
			if depth == len(levels) {
				levels = append(levels, nil)
			}
			if part = regexp.QuoteMeta(part); !slices.Contains(levels[depth], part) {
				levels[depth] = append(levels[depth], part)
			}
		}
	}
	var parts []string
	for _, names := range levels {
		parts = append(parts, "^("+strings.Join(names, "|")+")$")
	}
	return strings.Join(parts, "/")
}

// failures of a report by the package. It reports false where something failed that is not a test.
func (r *report) failures() (map[string][]string, bool) {
	all, count := map[string][]string{}, 0
	for path, p := range r.packages {
		if !p.failed {
			continue
		}
		all[path] = p.failures()
		if len(all[path]) == 0 {
			return nil, false
		}
		tops := map[string]bool{}
		for _, name := range all[path] {
			tops[top(name)] = true
		}
		count += len(tops)
	}
	return all, count > 0 && count <= retried
}

// passed reports whether tests of a package passed: a test that is skipped in the second run has shown nothing.
func (p *result) passed(tests []string) bool {
	return p != nil && !slices.ContainsFunc(tests, func(name string) bool {
		return p.tests[name] == nil || p.tests[name].action != "pass"
	})
}

// retry runs the failed tests once more, each package alone, and reports whether all of them passed then.
func (s session) retry(ctx context.Context, r *report, runs []invocation, flags []string) (bool, error) {
	failed, can := r.failures()
	if !can {
		return false, nil
	}
	passed := true
	for _, path := range slices.Sorted(maps.Keys(failed)) {
		i, found := invocationOf(runs, path)
		if !found {
			return false, nil
		}
		fmt.Fprintf(s.out, "\n##### once more: %s %s\n", strings.TrimPrefix(path, module), strings.Join(failed[path], " "))
		i.tests, i.dirs = nil, []string{path}
		again := newReport(s.out, r.verbose)
		selected := slices.Concat(flags, []string{"-count=1", "-run", pattern(failed[path])})
		ok, err := goTest(ctx, again, i.arguments(selected))
		if err != nil {
			return false, err
		}
		if !ok || !again.packages[path].passed(failed[path]) {
			passed = false
			continue
		}
		r.replace(path, failed[path], again.packages[path])
	}
	return passed, nil
}

// invocationOf finds the run that a package was in.
func invocationOf(runs []invocation, path string) (invocation, bool) {
	dir := "./" + strings.TrimPrefix(path, module)
	at := slices.IndexFunc(runs, func(i invocation) bool { return slices.Contains(i.dirs, dir) })
	if at < 0 {
		return invocation{}, false
	}
	return runs[at], true
}

// replace puts the results of a second run in the place of those of failed tests, and notes down that they are flaky.
func (r *report) replace(path string, failed []string, again *result) {
	p := r.packages[path]
	maps.Copy(p.tests, again.tests)
	p.failed = false
	for _, name := range failed {
		r.flaky = append(r.flaky, p.name+" "+name)
	}
}

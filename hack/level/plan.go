package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	unit = "unit"
	// race is the unit level with the race detector for all packages.
	race      = "race"
	envtest   = "envtest"
	simulated = "simulated"
	e2e       = "e2e"
	// nightly has tests that are too slow for every change: those of the test cluster itself, which most changes do not
	// touch.
	nightly = "nightly"

	// bubbles is the package that runs tests in bubbles of testing/synctest.
	bubbles = "github.com/kruisekit/kruisekit/test/bubbletest"
)

// clusterLevels are those whose tests need a cluster, and have a build tag.
func clusterLevels() []string { return []string{envtest, simulated, e2e, nightly} }

// invocation is one run of go test.
type invocation struct {
	flags []string
	tests []string // all if empty
	dirs  []string
}

// arguments are those of go test. The linter has run every analyzer of go vet on the files of all levels.
func (i invocation) arguments(flags []string) []string {
	all := append([]string{"-vet=off"}, i.flags...)
	if len(i.tests) > 0 {
		all = append(all, "-run", "^("+strings.Join(i.tests, "|")+")$")
	}
	// The flags of the caller come later, and so count.
	return slices.Concat(all, flags, i.dirs)
}

// plan returns what a level runs.
//
// The unit level runs under the race detector the packages that start goroutines themselves. The others run without it,
// at a fifth of the time, and at the race level, which is a part of the nightly one, under it. A second run without it
// is for the packages with tests that the detector would crash, see test/bubbletest.
//
// The levels with a cluster run without the detector, which would take most of their time: what they compute is in part
// the work of other processes, and what is ours the unit level runs under the detector. The packages with bubbles are
// the exception, for only an API server shows the detector their concurrent code.
func plan(level string, files []file) ([]invocation, error) {
	inBubbles := slices.DeleteFunc(slices.Clone(files), func(f file) bool {
		return !f.test || !slices.Contains(f.imports, bubbles)
	})
	switch level {
	case unit:
		return planUnit(files, dirsOf(inBubbles)), nil
	case race:
		return []invocation{{flags: []string{"-race"}, dirs: unitTested(files)}}, nil
	}
	if !slices.Contains(clusterLevels(), level) {
		return nil, fmt.Errorf("unknown level %q", level)
	}
	var plain, raced []file
	for _, f := range files {
		switch {
		case !slices.Contains(f.tags, level):
		case level == envtest && slices.Contains(dirsOf(inBubbles), f.dir):
			raced = append(raced, f)
		default:
			plain = append(plain, f)
		}
	}
	var runs []invocation
	// Never cached: the outcome depends on binaries and a kernel that the go command does not know.
	flags := []string{"-count=1", "-tags", level}
	if len(plain) > 0 {
		runs = append(runs, invocation{flags: flags, tests: testsOf(plain), dirs: dirsOf(plain)})
	}
	if len(raced) > 0 {
		runs = append(runs, invocation{
			flags: append([]string{"-race"}, flags...), tests: testsOf(raced), dirs: dirsOf(raced),
		})
	}
	return runs, nil
}

// races reports whether one of the runs is under the race detector.
func races(runs []invocation) bool {
	return slices.ContainsFunc(runs, func(i invocation) bool { return slices.Contains(i.flags, "-race") })
}

func planUnit(files []file, inBubbles []string) []invocation {
	of := concurrent(files)
	var raced, plain []string
	for _, dir := range unitTested(files) {
		if slices.Contains(of, dir) {
			raced = append(raced, dir)
		}
		if !slices.Contains(of, dir) || slices.Contains(inBubbles, dir) {
			plain = append(plain, dir)
		}
	}
	var runs []invocation
	if len(raced) > 0 {
		runs = append(runs, invocation{flags: []string{"-race"}, dirs: raced})
	}
	if len(plain) > 0 {
		runs = append(runs, invocation{dirs: plain})
	}
	return runs
}

// unitTested returns the directories of packages with tests of the unit level.
func unitTested(files []file) []string {
	return dirsOf(slices.DeleteFunc(slices.Clone(files), func(f file) bool { return !f.test || ofCluster(f) }))
}

func testsOf(files []file) []string {
	all := map[string]bool{}
	for _, f := range files {
		for _, test := range f.tests {
			all[test] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func dirsOf(files []file) []string {
	all := map[string]bool{}
	for _, f := range files {
		all[f.dir] = true
	}
	return slices.Sorted(maps.Keys(all))
}

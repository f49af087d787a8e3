package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// way counts the files and packages of the library with statements that an update in place runs.
type way struct {
	files int
	// own are the files with statements that the passes before the update did not run.
	own      int
	packages int
}

// passed returns the way of an update in place. TestUpdate does what TestCreate does, and then updates the pod. The way
// is the difference of their coverage.
func passed(root string) (way, error) {
	dir, err := os.MkdirTemp("", "figures-")
	if err != nil {
		return way{}, fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	own, module, err := instrumented(root)
	if err != nil {
		return way{}, err
	}
	program := filepath.Join(dir, "way.test")
	instrument := "-coverpkg=" + strings.Join(own, ",")
	_, err = exported.Go(root, "test", "-c", "-o", program, "-covermode=atomic", instrument, "./hack/figures")
	if err != nil {
		return way{}, err
	}
	created, err := covered(program, "TestCreate")
	if err != nil {
		return way{}, err
	}
	updated, err := covered(program, "TestUpdate")
	if err != nil {
		return way{}, err
	}
	return difference(created, updated, module), nil
}

// instrumented returns the packages of the library that the test compiles, and the path of the module.
func instrumented(root string) (packages []string, module string, err error) {
	own, err := exported.List(root, "./hack/figures")
	if err != nil {
		return nil, "", err
	}
	module = own[0].Module.Path
	all, err := exported.List(root, "-deps", "-test", "./hack/figures")
	if err != nil {
		return nil, "", err
	}
	for _, p := range all {
		if p.Own(module) && library(p.Path()+"/") {
			packages = append(packages, p.ImportPath)
		}
	}
	return packages, module, nil
}

// covered runs a test of a program and returns the text of its profile.
func covered(program, test string) (string, error) {
	profile := filepath.Join(filepath.Dir(program), test+".out")
	cmd := exec.Command(program, "-test.run=^"+test+"$", "-test.coverprofile="+profile)
	cmd.Dir = filepath.Dir(program)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", test, err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return "", fmt.Errorf("read profile: %w", err)
	}
	return string(text), nil
}

// difference returns the way that leads from one profile to another.
func difference(before, after, module string) way {
	counted := countsOf(before)
	var files, own, packages []string
	for block, n := range countsOf(after) {
		file, _, _ := strings.Cut(strings.TrimPrefix(block, module+"/"), ":")
		if n <= counted[block] || !library(file) || strings.HasPrefix(path.Base(file), "zz_") {
			continue
		}
		files, packages = append(files, file), append(packages, path.Dir(file))
		if counted[block] == 0 {
			own = append(own, file)
		}
	}
	return way{different(files), different(own), different(packages)}
}

// different returns how many names differ.
func different(names []string) int {
	slices.Sort(names)
	return len(slices.Compact(names))
}

// countsOf returns how often each block of a profile ran. A block is a file and a range in it.
func countsOf(profile string) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(profile) {
		var block string
		var statements, n int
		if _, err := fmt.Sscan(line, &block, &statements, &n); err == nil && statements > 0 {
			counts[block] += n
		}
	}
	return counts
}

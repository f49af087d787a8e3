// Level runs the tests of one level, or of all levels, and prints what each package took.
//
//	go run ./hack/level unit [go test flags]
//	go run ./hack/level envtest|simulated|e2e|nightly [go test flags]
//	go run ./hack/level all [go test flags]
//	go run ./hack/level packages
//
// The unit level is every test that needs no cluster, with the race detector. Of the other levels it runs the tests in files
// with the level's build tag, and no others. It holds the control plane that the tests of the envtest level share, so that a
// run starts it once and installs each CRD once.
//
// With all, the set-up comes first: system packages where this process can install them, and the programs of the clusters. A
// table of the levels comes last: passed, failed, skipped and why. packages does the first part of the set-up alone.
//
// What runs under the race detector is decided in plan.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// levels of all, in the order in which they run. The nightly one is not among them.
func levels() []string { return []string{unit, envtest, simulated, e2e} }

func main() {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: level unit|envtest|simulated|e2e|nightly|all|packages [go test flags]")
		os.Exit(2)
	}
	ctx, flags := context.Background(), os.Args[2:]
	if os.Args[1] == "packages" {
		if absent := prepare(ctx, os.Stdout); len(absent) > 0 && required() {
			os.Exit(1)
		}
		return
	}
	var outcomes []outcome
	if os.Args[1] == "all" {
		outcomes = all(ctx, flags)
		printOutcomes(os.Stdout, outcomes)
	} else {
		o := one(ctx, os.Args[1], missing(needs()), flags)
		outcomes = []outcome{o}
		if o.failed != nil || o.notRun != "" {
			printOutcomes(os.Stderr, outcomes)
		}
	}
	if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.red(required()) }) {
		os.Exit(1)
	}
}

// all sets up what is missing, and runs the levels one after the other.
func all(ctx context.Context, flags []string) []outcome {
	absent := prepare(ctx, os.Stdout)
	setUp := map[string]error{}
	outcomes := make([]outcome, 0, len(levels()))
	for _, level := range levels() {
		if obstacle(level, absent) == "" {
			setUp[level] = build(ctx, subsetsOf(level)...)
		}
	}
	for _, level := range levels() {
		if err := setUp[level]; err != nil {
			outcomes = append(outcomes, outcome{level: level, failed: err})
			continue
		}
		fmt.Printf("\n##### level %s\n", level)
		outcomes = append(outcomes, one(ctx, level, absent, flags))
	}
	return outcomes
}

// subsetsOf names the programs that a level needs. The demo is tested with simulated nodes.
func subsetsOf(level string) []binaries.Subset {
	return map[string][]binaries.Subset{
		envtest: {binaries.ControlPlane}, simulated: {binaries.Simulated, binaries.Demo}, e2e: {binaries.Nodes}, nightly: {binaries.Nodes},
	}[level]
}

func build(ctx context.Context, subsets ...binaries.Subset) error {
	cache, err := binaries.Open()
	if err != nil {
		return err
	}
	for _, s := range subsets {
		if err := cache.Build(ctx, s, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// one runs a level.
func one(ctx context.Context, level string, absent []need, flags []string) outcome {
	if why := obstacle(level, absent); why != "" {
		return outcome{level: level, notRun: why}
	}
	raceless := lacks(absent, forRace)
	r, err := run(ctx, level, raceless, slices.Concat(usualFlags(level), flags))
	if err != nil {
		return outcome{level: level, failed: err}
	}
	o := r.outcome(level)
	if raceless {
		o.remark = "without the race detector: no C compiler"
	}
	return o
}

func run(ctx context.Context, level string, raceless bool, flags []string) (*report, error) {
	files, err := readModule(".")
	if err != nil {
		return nil, err
	}
	runs, err := plan(level, files)
	if err != nil {
		return nil, err
	}
	if level == envtest {
		release, err := cluster.Hold(ctx)
		switch {
		case errors.Is(err, binaries.ErrMissing): // each test skips or fails, and says why
		case err != nil:
			return nil, err
		default:
			defer release()
		}
	}
	r := newReport(os.Stdout, verbose(flags))
	passed := true
	for _, i := range runs {
		if raceless {
			i.flags = slices.DeleteFunc(slices.Clone(i.flags), func(f string) bool { return f == "-race" })
		}
		ok, err := r.goTest(ctx, i.arguments(flags))
		if err != nil {
			return nil, err
		}
		passed = passed && ok
	}
	r.summary(level)
	if !passed && r.outcome(level).counts.failed == 0 {
		return r, errors.New("go test failed outside of the tests: see above")
	}
	return r, nil
}

func verbose(flags []string) bool {
	for _, f := range flags {
		if name := strings.TrimLeft(f, "-"); name == "v" || name == "v=true" {
			return true
		}
	}
	return false
}

// goTest runs the go command, and reports whether the tests pass.
func (r *report) goTest(ctx context.Context, arguments []string) (passed bool, err error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, arguments...)...)
	// The compiler, the linker and the tests live for seconds: memory is cheaper than collections. What the caller has set counts.
	command.Env = append([]string{"GOGC=400"}, os.Environ()...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return false, fmt.Errorf("run go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return false, fmt.Errorf("run go test: %w", err)
	}
	read := r.read(events)
	err = command.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return false, fmt.Errorf("run go test: %w", err)
	}
	return err == nil, read
}

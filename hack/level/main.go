// Level runs the tests of one level, or of all levels, and prints what each package took.
//
//	go run ./hack/level unit [go test flags]
//	go run ./hack/level envtest|simulated|e2e|nightly|race [go test flags]
//	go run ./hack/level all [go test flags]
//	go run ./hack/level versions [-write] [-level envtest|e2e] [-run REGEXP] [MINOR...]
//	go run ./hack/level binaries DIRECTORY unit|envtest|simulated|e2e|nightly
//
// The unit level is every test that needs no cluster, with the race detector where a package starts goroutines; the
// race level has it everywhere. Of the other levels it runs the tests in files with the level's build tag, and no
// others. It holds the control plane that the tests of the envtest level share, so that a run starts it once and
// installs each CRD once.
//
// With all, the set-up comes first: system packages where this process can install them, and the programs of the
// clusters. The levels then run one after the other: tests on real nodes fail on a machine that others keep busy. A
// table of the levels comes last: passed, failed, skipped and why. binaries builds the test binaries of a level, and
// prints how to run each of them, for who runs them more than once: see hack/stress.
//
// versions runs the envtest level on control planes of each supported version of Kubernetes and the e2e level on the
// oldest and the newest, and prints the matrix of docs/versions.md; see versions.go.
//
// With KRUISEKIT_RETRY=1, as in CI, up to three failed tests of a level run once more. One that passes then is flaky:
// the level is not red, its first output stands above, and the last lines name it.
//
// What runs under the race detector is decided in plan.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

// levels of all, in the order in which they are reported. The nightly one is not among them.
func levels() []string { return []string{unit, envtest, simulated, e2e} }

// session is what runs of levels have in common.
type session struct {
	absent []packages.Package
	flags  []string // of go test
	out    io.Writer
}

func main() {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: level unit|race|envtest|simulated|e2e|nightly|all|versions [go test flags]")
		os.Exit(2)
	}
	ctx, flags := context.Background(), os.Args[2:]
	if run := commands()[os.Args[1]]; run != nil {
		if err := run(ctx, os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var outcomes []outcome
	if os.Args[1] == "all" {
		outcomes = all(ctx, flags)
		printOutcomes(os.Stdout, outcomes)
	} else {
		o := session{absent: packages.Missing(packages.All()), flags: flags, out: os.Stdout}.one(ctx, os.Args[1])
		outcomes = []outcome{o}
		if o.failed != nil || o.notRun != "" {
			printOutcomes(os.Stderr, outcomes)
		}
	}
	if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.red(required()) }) {
		os.Exit(1)
	}
}

// commands beside the levels.
func commands() map[string]func(ctx context.Context, arguments []string, out io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer) error{"binaries": binariesOf, "versions": versions}
}

// all sets up what is missing, and runs the levels one after the other.
func all(ctx context.Context, flags []string) []outcome {
	s := session{absent: packages.Prepare(ctx, os.Stdout, packages.All()), flags: flags, out: os.Stdout}
	if text := packages.Advice(s.absent); text != "" {
		fmt.Fprintln(s.out, text)
	}
	setUp := map[string]error{}
	for _, level := range levels() {
		if obstacle(level, s.absent) == "" {
			setUp[level] = build(ctx, os.Stdout, subsetsOf(level)...)
		}
	}
	run := func(level string) outcome {
		if err := setUp[level]; err != nil {
			return outcome{level: level, failed: err}
		}
		fmt.Fprintf(s.out, "\n##### level %s\n", level)
		o := s.one(ctx, level)
		if o.notRun != "" {
			fmt.Fprintln(s.out, "not run:", o.notRun)
		}
		return o
	}
	outcomes := make([]outcome, 0, len(levels()))
	for _, level := range levels() {
		outcomes = append(outcomes, run(level))
	}
	return outcomes
}

// subsetsOf names the programs that a level needs. The demo is tested with simulated nodes.
func subsetsOf(level string) []binaries.Subset {
	return map[string][]binaries.Subset{
		envtest:   {binaries.ControlPlane},
		simulated: {binaries.Simulated, binaries.Demo},
		e2e:       {binaries.Nodes, binaries.Storage},
		nightly:   {binaries.Nodes},
	}[level]
}

func build(ctx context.Context, out io.Writer, subsets ...binaries.Subset) error {
	cache, err := binaries.Open()
	if err != nil {
		return err
	}
	for _, s := range subsets {
		if err := cache.Build(ctx, s, out); err != nil {
			return err
		}
	}
	return nil
}

// one runs a level.
func (s session) one(ctx context.Context, level string) outcome {
	if why := obstacle(level, s.absent); why != "" {
		return outcome{level: level, notRun: why}
	}
	r, err := s.run(ctx, level)
	if err != nil {
		return outcome{level: level, failed: err}
	}
	o := r.outcome(level)
	if r.raceless {
		o.remark = "without the race detector: no C compiler"
	}
	return o
}

// raceless reports whether runs ask for the race detector, and the system does not have it.
func (s session) raceless(runs []invocation) bool {
	return packages.Lacks(s.absent, packages.Race) && races(runs)
}

func (s session) run(ctx context.Context, level string) (*report, error) {
	files, err := readModule(".")
	if err != nil {
		return nil, err
	}
	runs, err := plan(level, files)
	if err != nil {
		return nil, err
	}
	release, err := hold(ctx, level)
	if err != nil {
		return nil, err
	}
	defer release()
	path, err := durationsFile(level)
	if err != nil {
		return nil, err
	}
	known, flags := readDurations(path), slices.Concat(usualFlags(level), s.flags)
	r := newReport(s.out, verbose(flags))
	r.raceless = s.raceless(runs)
	for _, i := range runs {
		known.order(i.dirs)
	}
	passed, err := s.runAll(ctx, r, runs, flags)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.flags, selects) {
		known.add(r)
		if err := known.write(path); err != nil {
			return nil, err
		}
	}
	r.summary(level)
	if !passed && r.outcome(level).counts.failed == 0 {
		return r, errors.New("go test failed outside of the tests: see above")
	}
	return r, nil
}

// hold starts the control plane that the tests of a level share, until it is released.
func hold(ctx context.Context, level string) (release func(), err error) {
	if level != envtest {
		return func() {}, nil
	}
	release, err = cluster.Hold(ctx)
	if errors.Is(err, binaries.ErrMissing) {
		return func() {}, nil // each test skips or fails, and says why
	}
	return release, err
}

// runAll runs go test for each invocation, and reports whether the tests pass.
func (s session) runAll(ctx context.Context, r *report, runs []invocation, flags []string) (bool, error) {
	passed := true
	for _, i := range runs {
		if r.raceless {
			i.flags = slices.DeleteFunc(slices.Clone(i.flags), func(f string) bool { return f == "-race" })
		}
		ok, err := goTest(ctx, r, i.arguments(flags))
		if err != nil {
			return false, err
		}
		passed = passed && ok
	}
	if passed || !retries() {
		return passed, nil
	}
	return s.retry(ctx, r, runs, flags)
}

// selects reports whether a flag of go test selects tests, whose durations are not those of their packages.
func selects(flag string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	return name == "run" || name == "skip" || name == "short"
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
func goTest(ctx context.Context, r *report, arguments []string) (passed bool, err error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, arguments...)...)
	command.Env = append([]string{
		// The compiler, the linker and the tests live for seconds: memory is cheaper than collections. What the caller has
		// set counts.
		"GOGC=400",
		// A program under the race detector sleeps for a second before it ends, for races of other threads to be printed.
		"GORACE=atexit_sleep_ms=50",
	}, os.Environ()...)
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

// Level runs the tests of one level, and prints what each package took.
//
//	go run ./hack/level unit [go test flags]
//	go run ./hack/level envtest|simulated|e2e [go test flags]
//
// The unit level is every test that needs no cluster, with the race detector. Of the other levels it runs the tests in files
// with the level's build tag, and no others. It holds the control plane that the tests of the envtest level share, so that a
// run starts it once and installs each CRD once.
//
// What runs under the race detector is decided in plan.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

func main() {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: level unit|envtest|simulated|e2e [go test flags]")
		os.Exit(2)
	}
	passed, err := run(context.Background(), os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "level %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
	if !passed {
		os.Exit(1)
	}
}

func run(ctx context.Context, level string, flags []string) (passed bool, err error) {
	files, err := readModule(".")
	if err != nil {
		return false, err
	}
	runs, err := plan(level, files)
	if err != nil {
		return false, err
	}
	if level == envtest {
		release, err := cluster.Hold(ctx)
		switch {
		case errors.Is(err, binaries.ErrMissing): // each test skips or fails, and says why
		case err != nil:
			return false, err
		default:
			defer release()
		}
	}
	r := newReport(os.Stdout, verbose(flags))
	passed = true
	for _, one := range runs {
		ok, err := r.goTest(ctx, one.arguments(flags))
		if err != nil {
			return false, err
		}
		passed = passed && ok
	}
	r.summary(level)
	return passed, nil
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

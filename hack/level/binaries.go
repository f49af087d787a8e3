package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// binariesOf builds the programs that a level needs, and its test binaries in a directory. For each binary it prints a
// line: the directory of its package, a tab, and the command to run there. The packages that take the longest come
// first.
func binariesOf(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) != 2 {
		return errors.New("usage: level binaries DIRECTORY LEVEL")
	}
	to, err := filepath.Abs(arguments[0])
	if err != nil {
		return err
	}
	level := arguments[1]
	files, err := readModule(".")
	if err != nil {
		return err
	}
	runs, err := plan(level, files)
	if err != nil {
		return err
	}
	if err := build(ctx, os.Stderr, subsetsOf(level)...); err != nil { // out has the list alone
		return err
	}
	path, err := durationsFile(level)
	if err != nil {
		return err
	}
	known := readDurations(path)
	for i, run := range runs {
		known.order(run.dirs)
		lines, errs := make([]string, len(run.dirs)), make([]error, len(run.dirs))
		var group sync.WaitGroup
		turns := make(chan struct{}, runtime.NumCPU())
		for k, dir := range run.dirs {
			turns <- struct{}{}
			group.Add(1)
			go func() {
				defer group.Done()

				defer func() { <-turns }()
				binary := filepath.Join(to, fmt.Sprintf("%d-%d.test", i, k))
				if errs[k] = run.build(ctx, binary, dir); errs[k] != nil {
					return
				}
				if _, err := os.Stat(binary); err == nil { // a package may have no tests
					lines[k] = fmt.Sprintf("%s\t%s\n",
						dir, strings.Join(append([]string{binary}, run.ofBinary(usualFlags(level))...), " "))
				}
			}()
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		fmt.Fprint(out, strings.Join(lines, ""))
	}
	return nil
}

// build builds the test binary of a package.
func (i invocation) build(ctx context.Context, binary, dir string) error {
	arguments := slices.Concat([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, i.flags, []string{dir})
	command := exec.CommandContext(ctx, "go", arguments...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, output.Bytes())
	}
	return nil
}

// ofBinary returns the arguments of a test binary for those of go test. It runs every test once.
func (i invocation) ofBinary(flags []string) []string {
	all := []string{"-test.count=1", "-test.timeout=20m"}
	if len(i.tests) > 0 {
		all = append(all, "'-test.run=^("+strings.Join(i.tests, "|")+")$'")
	}
	for k := 0; k+1 < len(flags); k += 2 {
		if flags[k] != "-p" { // that is of the go command
			all = append(all, "-test."+strings.TrimPrefix(flags[k], "-")+"="+flags[k+1])
		}
	}
	return all
}

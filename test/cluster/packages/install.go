package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Prepare installs the missing packages where this process can, and returns those that are missing still.
func Prepare(ctx context.Context, out io.Writer, all []Package) []Package {
	absent := Missing(all)
	if len(absent) == 0 || !installs() {
		return absent
	}
	fmt.Fprintf(out, "installing %s\n", Names(absent))
	if err := install(absent, aptGet(ctx)); err != nil {
		fmt.Fprintln(out, err)
	}
	return Missing(all)
}

// PrepareNodes does the same for real nodes. The error names all that is missing in one line.
func PrepareNodes(ctx context.Context, out io.Writer) error {
	if why := Obstacle(Prepare(ctx, out, ForNodes(All()))); why != "" {
		return errors.New(why)
	}
	return nil
}

// Obstacle is one line about why real nodes cannot run on this machine without packages; empty where they can.
func Obstacle(absent []Package) string {
	return obstacle(runtime.GOOS, os.Geteuid() == 0, ForNodes(absent))
}

func obstacle(system string, root bool, absent []Package) string {
	var needs []string
	if system != "linux" {
		return "real nodes need Linux"
	}
	if !root {
		needs = append(needs, "root")
	}
	if len(absent) > 0 {
		needs = append(needs, "these packages (names of Debian): "+Names(absent))
	}
	if len(needs) == 0 {
		return ""
	}
	return "real nodes need " + strings.Join(needs, ", and ")
}

// installs reports whether this process can install packages: root on Debian or Ubuntu.
func installs() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && runtime.GOOS == "linux" && os.Geteuid() == 0
}

// install installs packages: all at once, and one by one where that fails, because a system may not have one of them.
func install(absent []Package, apt func(args ...string) error) error {
	if err := apt("update", "-qq"); err != nil {
		return err
	}
	names := strings.Fields(Names(absent))
	one := func(names ...string) error {
		return apt(slices.Concat([]string{"install", "-qq", "-y", "--no-install-recommends"}, names)...)
	}
	if one(names...) == nil {
		return nil
	}
	var failures []error
	for _, name := range names {
		failures = append(failures, one(name))
	}
	return errors.Join(failures...)
}

// aptGet runs apt-get, and returns what it prints where it fails.
func aptGet(ctx context.Context) func(args ...string) error {
	return func(args ...string) error {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run apt-get %s: %w: %s", args[0], err, bytes.TrimSpace(output))
		}
		return nil
	}
}

//go:build linux

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
)

// execute runs a short command and returns what it printed.
func execute(ctx context.Context, name string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %v: %w: %s", name, args, err, bytes.TrimSpace(output))
	}
	return string(output), nil
}

// executeAll runs commands until one fails.
func executeAll(ctx context.Context, commands ...[]string) error {
	for _, command := range commands {
		if _, err := execute(ctx, command[0], command[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// enter prefixes a command that is to run in the namespaces of the given process.
func enter(pid int, command ...string) []string {
	return append([]string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--net", "--pid", "--"}, command...)
}

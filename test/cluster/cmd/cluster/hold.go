package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// hold keeps the control plane that tests share while a command runs. Without its programs each test skips or fails.
func (c command) hold(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("hold: which command?")
	}
	release, err := cluster.Hold(ctx)
	switch {
	case errors.Is(err, binaries.ErrMissing):
	case err != nil:
		return err
	default:
		defer release()
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, c.out, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

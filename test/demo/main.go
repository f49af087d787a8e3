// Command demo shows rollouts in place of a CloneSet and of a Deployment beside that of a plain Deployment, in a
// cluster that it starts for itself and takes down again: a real control plane, simulated nodes, and kruisekit's
// reconcilers in this process.
//
//	go run ./test/demo    # or: make demo
//
// It needs Go and nothing else: no root, no Docker, no kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interrupted is what a shell expects of a program that Ctrl-C has ended.
const interrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C does not wait
	err := run(ctx, os.Stdout)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted:", err)
		os.Exit(interrupted)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

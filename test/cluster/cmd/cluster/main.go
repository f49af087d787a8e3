// Command cluster builds, starts and stops test clusters. See ../../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

const usage = `usage: cluster COMMAND

  build [SUBSET...]   build the programs into the cache; subsets: control-plane, simulated, demo, nodes, storage
                      (default: all)
  up                  start the cluster of real nodes
  down                stop it and remove what it has left
  status              say whether it runs
  image NAME...       push an image of busybox under each name to its registry;
                      with -program FILE it is of that static program alone
  env                 print its environment for a shell
  hold COMMAND...     run a command whose tests share a control plane
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(out, usage)
		return errors.New("which command?")
	}
	cache, err := binaries.Open()
	if err != nil {
		return err
	}
	tool := command{cache: cache, out: out}
	commands := map[string]func(context.Context, []string) error{
		"build": tool.build, "up": tool.up, "down": tool.down, "status": tool.status, "image": tool.image, "env": tool.env,
		"hold": tool.hold,
	}
	do, ok := commands[args[0]]
	if !ok {
		fmt.Fprint(out, usage)
		return fmt.Errorf("unknown command %q", args[0])
	}
	return do(ctx, args[1:])
}

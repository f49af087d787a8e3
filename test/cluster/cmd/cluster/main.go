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
	"github.com/kruisekit/kruisekit/test/cluster/internal/launch"
)

const usage = `usage: cluster COMMAND [FLAGS]

  build [SUBSET...]   build the programs into the cache; subsets: control-plane, simulated, nodes (default: all)
  up                  start a cluster: -level control-plane|simulated|real (default real), -nodes N (simulated)
  down                stop it and remove what it has left: -level as for up (default: every level)
  status              say what runs
  image NAME...       push an image of busybox under each name to the registry of the real cluster;
                      with -program FILE it is of that static program alone
  hold COMMAND...     keep the control plane that tests share while a command runs
  kubeconfig          print the path of the kubeconfig: -level as for up
  env                 print the environment for a shell: -level as for up
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
	tool := command{cache: cache, out: out, flags: flag.NewFlagSet("cluster "+args[0], flag.ContinueOnError)}
	commands := map[string]func(context.Context, []string) error{
		"build": tool.build, "up": tool.up, "down": tool.down, "status": tool.status,
		"image": tool.image, "hold": tool.hold, "kubeconfig": tool.kubeconfig, "env": tool.env, launch.Subcommand: tool.keep,
	}
	do, ok := commands[args[0]]
	if !ok {
		fmt.Fprint(out, usage)
		return fmt.Errorf("unknown command %q", args[0])
	}
	return do(ctx, args[1:])
}

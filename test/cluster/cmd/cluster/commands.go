package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

// startup bounds `up`, without building.
const startup = 10 * time.Minute

type command struct {
	cache binaries.Cache
	out   io.Writer
}

func (c command) build(ctx context.Context, args []string) error {
	subsets := binaries.Subsets()
	if len(args) > 0 {
		subsets = nil
		for _, name := range args {
			subsets = append(subsets, binaries.Subset(name))
		}
	}
	for _, s := range subsets {
		if err := c.cache.Build(ctx, s, os.Stderr); err != nil {
			return err
		}
		fmt.Fprintln(c.out, s, "is built")
	}
	return nil
}

func (c command) up(ctx context.Context, _ []string) error {
	if err := packages.PrepareNodes(ctx, os.Stderr); err != nil {
		return err
	}
	if err := c.cache.Build(ctx, binaries.Nodes, os.Stderr); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	config, err := nodes.OfMachine(c.cache)
	if err != nil {
		return err
	}
	begin := time.Now()
	started, err := config.Up(ctx)
	if err != nil {
		return err
	}
	if started {
		fmt.Fprintf(c.out, "up after %s\n", time.Since(begin).Round(time.Second/10))
	} else {
		fmt.Fprintln(c.out, "up already")
	}
	return c.env(ctx, nil)
}

func (c command) down(ctx context.Context, _ []string) error {
	config, _ := nodes.OfMachine(c.cache) // without its programs it can be stopped
	begin := time.Now()
	if err := config.Down(ctx); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "down after %s\n", time.Since(begin).Round(time.Second/10))
	return nil
}

func (c command) status(ctx context.Context, _ []string) error {
	config, err := nodes.OfMachine(c.cache)
	if err == nil {
		err = config.Health(ctx)
	}
	if err != nil {
		fmt.Fprintln(c.out, "down:", err)
		return nil
	}
	fmt.Fprintln(c.out, "up, kubeconfig", config.Kubeconfig())
	return nil
}

func (c command) env(context.Context, []string) error {
	config, err := nodes.OfMachine(c.cache)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "export KUBECONFIG=%s PATH=%s:$PATH\nexport KRUISEKIT_REGISTRY=%s\n",
		config.Kubeconfig(), filepath.Dir(config.Programs["kubectl"]),
		strings.TrimPrefix(nodes.RegistryURL, "http://"))
	return nil
}

func (c command) image(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster image", flag.ContinueOnError)
	program := flags.String("program", "", "a static program that is all of the image; else it is busybox")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if flags.NArg() == 0 {
		return errors.New("image: which names?")
	}
	var spec image.Spec
	if *program != "" {
		content, err := os.ReadFile(*program)
		if err != nil {
			return fmt.Errorf("image: %w", err)
		}
		spec = image.Program(filepath.Base(*program), content)
	}
	config, err := nodes.OfMachine(c.cache)
	if err != nil {
		return err
	}
	pusher, err := config.Pusher(ctx)
	if err != nil {
		return err
	}
	for _, name := range flags.Args() {
		spec.Name = name
		pushed, err := pusher.Push(ctx, spec)
		if err != nil {
			return fmt.Errorf("push %s: %w", name, err)
		}
		fmt.Fprintf(c.out, "%s@%s\n", pushed.Name, pushed.Digest)
	}
	return nil
}

// hold runs a command whose tests share a control plane. Without its programs each test skips or fails.
func (c command) hold(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("hold: which command?")
	}
	kubeconfig, release, err := cluster.Hold(ctx)
	switch {
	case errors.Is(err, binaries.ErrMissing):
		release = func() error { return nil }
	case err != nil:
		return err
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, c.out, os.Stderr
	command.Env = append(os.Environ(), cluster.SharedVariable+"="+kubeconfig)
	err = errors.Join(command.Run(), release())
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/internal/keeper"
	"github.com/kruisekit/kruisekit/test/cluster/internal/launch"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

func (c command) upReal(ctx context.Context) error {
	if err := packages.PrepareNodes(ctx, os.Stderr); err != nil {
		return err
	}
	if err := c.cache.Build(ctx, binaries.Nodes, os.Stderr); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	config, err := launch.RealNodes(c.cache)
	if err != nil {
		return err
	}
	begin := time.Now()
	started, err := config.Up(ctx)
	if err != nil {
		return err
	}
	if started {
		fmt.Fprintf(c.out, "%s is up after %s\n", realNodes, time.Since(begin).Round(time.Second/10))
	} else {
		fmt.Fprintf(c.out, "%s is up already\n", realNodes)
	}
	return c.printEnv(realNodes)
}

func (c command) downReal(ctx context.Context) error {
	// A user who has only started the other levels has nothing here, and may have no right to look.
	config, _ := launch.RealNodes(c.cache)
	if _, err := os.Stat(config.Dir); errors.Is(err, os.ErrNotExist) && os.Geteuid() != 0 {
		return nil
	}
	begin := time.Now()
	if err := config.Down(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", realNodes, err)
	}
	fmt.Fprintf(c.out, "%s is down after %s\n", realNodes, time.Since(begin).Round(time.Second/10))
	return nil
}

func (c command) statusReal(ctx context.Context) error {
	config, err := launch.RealNodes(c.cache)
	if err == nil {
		err = config.Health(ctx)
	}
	if err != nil {
		fmt.Fprintf(c.out, "%-14s down: %v\n", realNodes, err)
		return nil
	}
	fmt.Fprintf(c.out, "%-14s up, kubeconfig %s\n", realNodes, config.Kubeconfig())
	return nil
}

func (c command) image(ctx context.Context, args []string) error {
	program := c.flags.String("program", "", "a static program that is all of the image; else it is busybox")
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if c.flags.NArg() == 0 {
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
	config, err := launch.RealNodes(c.cache)
	if err != nil {
		return err
	}
	pusher, err := config.Pusher(ctx)
	if err != nil {
		return err
	}
	for _, name := range c.flags.Args() {
		spec.Name = name
		pushed, err := pusher.Push(ctx, spec)
		if err != nil {
			return fmt.Errorf("push %s: %w", name, err)
		}
		fmt.Fprintf(c.out, "%s@%s\n", pushed.Name, pushed.Digest)
	}
	return nil
}

func (c command) kubeconfigOf(level string) string {
	if level == realNodes {
		config, _ := launch.RealNodes(c.cache)
		return config.Kubeconfig()
	}
	return keeper.Kubeconfig(c.cache.State(level))
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/internal/keeper"
	"github.com/kruisekit/kruisekit/test/cluster/internal/launch"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
)

const (
	controlPlane = "control-plane"
	simulated    = "simulated"
	realNodes    = "real"

	// startup bounds `up`, without building.
	startup = 10 * time.Minute
	// grace is what a keeper gets to stop its programs.
	grace = 20 * time.Second
)

type command struct {
	cache binaries.Cache
	flags *flag.FlagSet
	out   io.Writer
}

func (c command) build(ctx context.Context, args []string) error {
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	subsets := binaries.Subsets()
	if c.flags.NArg() > 0 {
		subsets = nil
		for _, name := range c.flags.Args() {
			subsets = append(subsets, binaries.Subset(name))
		}
	}
	for _, s := range subsets {
		if err := c.cache.Build(ctx, s, os.Stderr); err != nil {
			return err
		}
		path, err := c.cache.SearchPath(s)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: %s\n", s, path)
	}
	return nil
}

// keep is what `up` and the tests run in the background.
func (c command) keep(ctx context.Context, args []string) error {
	var r launch.Request
	c.flags.StringVar(&r.Dir, "dir", "", "directory of the keeper")
	c.flags.IntVar(&r.Nodes, "nodes", 0, "simulated nodes")
	c.flags.DurationVar(&r.Idle, "idle", 0, "end when unused for so long")
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	return launch.Keep(ctx, c.cache, r)
}

func (c command) up(ctx context.Context, args []string) error {
	level := c.flags.String("level", realNodes, "control-plane, simulated or real")
	nodes := c.flags.Int("nodes", 3, "simulated nodes")
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	request := launch.Request{Dir: c.cache.State(*level)}
	switch *level {
	case realNodes:
		return c.upReal(ctx)
	case simulated:
		request.Nodes = max(1, *nodes)
	case controlPlane:
	default:
		return fmt.Errorf("unknown level %q", *level)
	}
	if err := c.cache.Build(ctx, binaries.Subset(*level), os.Stderr); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	begin := time.Now()
	lease, err := launch.Attach(ctx, request, os.Executable)
	if err != nil {
		return err
	}
	defer lease.Release()
	if !lease.Started {
		fmt.Fprintf(c.out, "%s is up already\n", *level)
	} else {
		fmt.Fprintf(c.out, "%s is up after %s\n", *level, time.Since(begin).Round(time.Second/10))
	}
	return c.printEnv(*level)
}

func (c command) down(ctx context.Context, args []string) error {
	level := c.flags.String("level", "", "control-plane, simulated or real; empty for all")
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("down: %w", err)
	}
	var failures []error
	for _, one := range []string{controlPlane, simulated} {
		if *level == "" || *level == one {
			failures = append(failures, c.downKept(one))
		}
	}
	if *level == "" || *level == realNodes {
		failures = append(failures, c.downReal(ctx))
	}
	return errors.Join(failures...)
}

func (c command) downKept(level string) error {
	dir := c.cache.State(level)
	// The keeper first, for it ends the plane in order; then what it could not.
	for _, records := range []string{dir, filepath.Join(dir, "plane", "run")} {
		if err := process.StopRecorded(records, grace); err != nil {
			return fmt.Errorf("stop %s: %w", level, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the state of %s: %w", level, err)
	}
	return nil
}

func (c command) status(ctx context.Context, args []string) error {
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	for _, level := range []string{controlPlane, simulated} {
		kept, err := keeper.Kept(c.cache.State(level))
		if err != nil {
			return err
		}
		state := "down"
		if kept {
			state = "up, kubeconfig " + keeper.Kubeconfig(c.cache.State(level))
		}
		fmt.Fprintf(c.out, "%-14s %s\n", level, state)
	}
	return c.statusReal(ctx)
}

func (c command) kubeconfig(_ context.Context, args []string) error {
	level := c.flags.String("level", realNodes, "control-plane, simulated or real")
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	fmt.Fprintln(c.out, c.kubeconfigOf(*level))
	return nil
}

func (c command) env(_ context.Context, args []string) error {
	level := c.flags.String("level", realNodes, "control-plane, simulated or real")
	if err := c.flags.Parse(args); err != nil {
		return fmt.Errorf("env: %w", err)
	}
	return c.printEnv(*level)
}

func (c command) printEnv(level string) error {
	path, err := c.cache.SearchPath(binaries.ControlPlane)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "export KUBECONFIG=%s PATH=%s:$PATH\n", c.kubeconfigOf(level), path)
	if config, err := launch.RealNodes(c.cache); err == nil && level == realNodes {
		fmt.Fprintf(c.out, "export KRUISEKIT_REGISTRY=%s\n", strings.TrimPrefix(config.Network.RegistryURL(), "http://"))
	}
	return nil
}

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/internal/flock"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/packages"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// Up starts the cluster and returns when all nodes are ready. It reports false where a healthy one is up already. What
// an earlier cluster has left, however it ended, is cleared first. When it fails, nothing but the logs is left.
func (c Config) Up(ctx context.Context) (started bool, err error) {
	lock, err := c.lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Release()
	if c.Health(ctx) == nil {
		return false, nil
	}
	if err := c.Check(); err != nil {
		return false, err
	}
	if err := c.clear(ctx); err != nil {
		return false, fmt.Errorf("clear what an earlier cluster left: %w", err)
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return false, fmt.Errorf("clear what an earlier cluster left: %w", err)
	}
	if err := c.up(ctx); err != nil {
		// The context may be why it failed, and must not keep us from clearing up.
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return false, errors.Join(err, c.clear(clearing))
	}
	return true, nil
}

func (c Config) up(ctx context.Context) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err := c.borrow(); err != nil {
		return err
	}
	if err := raiseLimits(); err != nil {
		return err
	}
	if err := connect(ctx); err != nil {
		return err
	}
	pusher, err := c.startRegistry(ctx)
	if err != nil {
		return err
	}
	pause, err := os.ReadFile(c.Programs["pause"])
	if err != nil {
		return fmt.Errorf("read pause: %w", err)
	}
	if _, err := pusher.Push(ctx, image.Spec{
		Name: sandboxImage, Scratch: true, Entrypoint: []string{"/pause"}, Files: map[string][]byte{"pause": pause},
	}); err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Config{
		Dir:             c.planeDir(),
		Programs:        c.Programs,
		Address:         api,
		Port:            443,
		Controllers:     true,
		Env:             []string{c.marker()},
		ControllerFlags: []string{"--enable-hostpath-provisioner=true"},
	})
	if err != nil {
		return err
	}
	started := make(chan error)
	for node := 1; node <= Count; node++ {
		go func() { started <- c.startNode(ctx, p, node) }()
	}
	var failures []error
	for range Count {
		failures = append(failures, <-started)
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return c.prepare(ctx)
}

// startRegistry starts the registry, whose images are in memory.
func (c Config) startRegistry(ctx context.Context) (*image.Pusher, error) {
	registry, err := c.run(process.Spec{
		Name: "registry", Path: c.Programs["crane"],
		Args: []string{"registry", "serve", "--address", registryAddress},
	})
	if err != nil {
		return nil, err
	}
	pusher, err := c.Pusher(ctx)
	if err != nil {
		return nil, err
	}
	return pusher, registry.Ready(ctx, pusher.Ping)
}

// Pusher pushes images to the registry of the cluster.
func (Config) Pusher(ctx context.Context) (*image.Pusher, error) {
	return image.NewPusher(ctx, RegistryURL, packages.Busybox)
}

// lock keeps two processes from starting and stopping at once. It lies beside the state directory, which goes.
func (c Config) lock(ctx context.Context) (*flock.Lock, error) {
	lock, err := flock.Exclusive(ctx, filepath.Clean(c.Dir)+".lock")
	if err != nil {
		return nil, fmt.Errorf("wait for another up or down: %w", err)
	}
	return lock, nil
}

package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/internal/flock"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

const (
	startLock  = "start.lock"
	useLock    = "use.lock"
	keeperLock = "keeper.lock"
	// readyFile is there while the plane may be used.
	readyFile = "ready"
	// planeDir holds the plane, and goes with it.
	planeDir = "plane"
	// watch is how often the keeper looks for users.
	watch = 500 * time.Millisecond
	// grace is what a program of an earlier keeper gets to end: none is of use.
	grace = time.Second
)

// Kubeconfig is where the plane that is kept in dir has its administrator's kubeconfig.
func Kubeconfig(dir string) string { return filepath.Join(dir, planeDir, "kubeconfig") }

// Config says what a keeper keeps.
type Config struct {
	// Dir is where users look for the plane.
	Dir string
	// Plane is what to run. Its Dir and Bound are set by the keeper.
	Plane plane.Config
	// Idle is how long the plane outlives its last user. Zero keeps it until the context ends.
	Idle time.Duration
	// Extend adds to the plane, given its directory, before anybody uses it. The returned function undoes it.
	Extend func(ctx context.Context, p *plane.Plane, dir string) (stop func() error, err error)
}

// Run keeps a plane until it is idle, the context ends or one of its programs does. The process that starts a keeper
// holds start.lock meanwhile.
func Run(ctx context.Context, c Config) (err error) {
	life, err := flock.TryExclusive(filepath.Join(c.Dir, keeperLock))
	if err != nil {
		return fmt.Errorf("keep plane: %w", err)
	}
	defer life.Release()
	if err := clearAway(c.Dir); err != nil {
		return err
	}
	c.Plane.Dir, c.Plane.Bound = filepath.Join(c.Dir, planeDir), true
	p, err := plane.Start(ctx, c.Plane)
	if err != nil {
		return fmt.Errorf("keep plane: %w", err)
	}
	stop := func() error { return nil }
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Join(c.Dir, readyFile)), stop(), p.Stop()) }()
	if c.Extend != nil {
		extended, err := c.Extend(ctx, p, c.Plane.Dir)
		if err != nil {
			return fmt.Errorf("extend plane: %w", err)
		}
		stop = extended
	}
	if err := os.WriteFile(filepath.Join(c.Dir, readyFile), nil, 0o600); err != nil {
		return fmt.Errorf("keep plane: %w", err)
	}
	last, err := c.untilIdle(ctx, p)
	defer last.Release()
	return err
}

// untilIdle returns when the plane is to be torn down, and holds start.lock if no process uses it.
func (c Config) untilIdle(ctx context.Context, p *plane.Plane) (*flock.Lock, error) {
	ticker := time.NewTicker(watch)
	defer ticker.Stop()
	used := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil, nil // a stop is no failure
		case <-p.Done():
			return nil, errors.New("a program of the plane has ended; see its log")
		case <-ticker.C:
		}
		if c.Idle == 0 {
			continue
		}
		idle, err := c.idle()
		if err != nil {
			return nil, err
		}
		if !idle {
			used = time.Now()
			continue
		}
		if time.Since(used) < c.Idle {
			continue
		}
		if last, err := c.close(); err != nil || last != nil {
			return last, err
		}
	}
}

func (c Config) idle() (bool, error) {
	lock, err := flock.TryExclusive(filepath.Join(c.Dir, useLock))
	if errors.Is(err, flock.ErrHeld) {
		return false, nil
	}
	lock.Release()
	return err == nil, err
}

// close returns start.lock if there is neither a user nor a process about to become one. As long as it is held no
// process can.
func (c Config) close() (*flock.Lock, error) {
	start, err := flock.TryExclusive(filepath.Join(c.Dir, startLock))
	if errors.Is(err, flock.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if idle, err := c.idle(); err != nil || !idle {
		start.Release()
		return nil, err
	}
	return start, nil
}

// clear removes what a keeper that was killed has left.
func clearAway(dir string) error {
	if err := process.StopRecorded(filepath.Join(dir, planeDir, "run"), grace); err != nil {
		return fmt.Errorf("clear the remains of a plane: %w", err)
	}
	for _, name := range []string{readyFile, planeDir} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("clear the remains of a plane: %w", err)
		}
	}
	return nil
}

package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/internal/flock"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
)

// Lease is one user's hold on a kept plane.
type Lease struct {
	// Kubeconfig of the plane's administrator.
	Kubeconfig string
	// Started says that there was none before.
	Started bool

	lock *flock.Lock
}

// Release lets the plane go.
func (l *Lease) Release() { l.lock.Release() }

// Attach takes a hold on the plane that is kept in dir. Where none is, launch has to start a keeper and return it: a
// process that calls Run with the same directory and outlives this one.
func Attach(ctx context.Context, dir string, launch func() (*process.Process, error)) (*Lease, error) {
	start, err := flock.Exclusive(ctx, filepath.Join(dir, startLock))
	if err != nil {
		return nil, fmt.Errorf("attach to the plane: %w", err)
	}
	defer start.Release()
	use, err := flock.Shared(ctx, filepath.Join(dir, useLock))
	if err != nil {
		return nil, fmt.Errorf("attach to the plane: %w", err)
	}
	lease := &Lease{Kubeconfig: Kubeconfig(dir), lock: use}
	kept, err := Kept(dir)
	if err == nil && !kept {
		lease.Started = true
		err = begin(ctx, dir, launch)
	}
	if err != nil {
		use.Release()
		return nil, err
	}
	return lease, nil
}

// Kept reports whether a plane may be used. A keeper that is tearing its plane down is waited for.
func Kept(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, readyFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("look for the plane: %w", err)
	}
	return flock.Held(filepath.Join(dir, keeperLock))
}

func begin(ctx context.Context, dir string, launch func() (*process.Process, error)) error {
	// There may be a keeper that is about to end, because it was stopped or a program of its plane died; or one that is
	// about to be ready, whose launcher died.
	free := false
	err := process.Poll(ctx, func(context.Context) error {
		if kept, err := Kept(dir); kept || err != nil {
			return err
		}
		end, err := flock.TryExclusive(filepath.Join(dir, keeperLock))
		end.Release()
		free = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the last keeper to end: %w", err)
	}
	if !free {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(dir, readyFile)); err != nil {
		return fmt.Errorf("clear the remains of a plane: %w", err)
	}
	keeper, err := launch()
	if err != nil {
		return err
	}
	err = keeper.Ready(ctx, func(context.Context) error {
		kept, err := Kept(dir)
		if err == nil && !kept {
			err = errNotReady
		}
		return err
	})
	if err != nil {
		return errors.Join(err, keeper.Stop(startGrace))
	}
	return nil
}

var errNotReady = errors.New("not ready yet")

// startGrace is what a keeper gets that did not come up in time, to stop what it has started.
const startGrace = 10 * time.Second

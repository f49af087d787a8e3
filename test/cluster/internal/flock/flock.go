//go:build linux || darwin

package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("lock is held")

// poll is how often a blocked lock is tried again: flock(2) itself cannot be cancelled.
const poll = 50 * time.Millisecond

// Lock is a held lock.
type Lock struct{ file *os.File }

// Release gives the lock back. It may be called more than once.
func (l *Lock) Release() {
	if l != nil && l.file != nil {
		_ = l.file.Close() // the kernel unlocks in any case
		l.file = nil
	}
}

// Exclusive waits for the lock until the context ends.
func Exclusive(ctx context.Context, path string) (*Lock, error) {
	return wait(ctx, path, syscall.LOCK_EX)
}

// Shared waits for the lock, which any number of processes may share, until the context ends.
func Shared(ctx context.Context, path string) (*Lock, error) { return wait(ctx, path, syscall.LOCK_SH) }

// TryExclusive takes the lock or returns ErrHeld.
func TryExclusive(path string) (*Lock, error) { return try(path, syscall.LOCK_EX) }

func wait(ctx context.Context, path string, how int) (*Lock, error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		lock, err := try(path, how)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w: %w", path, err, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func try(path string, how int) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &Lock{file: file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, ErrHeld)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

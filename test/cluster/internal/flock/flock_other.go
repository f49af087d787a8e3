//go:build !linux && !darwin

package flock

import (
	"context"
	"errors"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("lock is held")

// Lock is no lock here: without flock(2), clusters are not shared between processes.
type Lock struct{}

// Release does nothing.
func (*Lock) Release() {}

// Exclusive always succeeds.
func Exclusive(context.Context, string) (*Lock, error) { return &Lock{}, nil }

// Shared always succeeds.
func Shared(context.Context, string) (*Lock, error) { return &Lock{}, nil }

// TryExclusive always succeeds.
func TryExclusive(string) (*Lock, error) { return &Lock{}, nil }

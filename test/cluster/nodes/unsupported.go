//go:build !linux

package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// ErrUnavailable says that this machine cannot run real nodes.
var ErrUnavailable = errors.New("not available on this machine")

// Check returns an error that wraps ErrUnavailable and says what is missing.
func (Config) Check() error { return fmt.Errorf("real nodes need Linux: %w", ErrUnavailable) }

// Up starts nothing here.
func (c Config) Up(context.Context) (bool, error) { return false, c.Check() }

// Down does nothing: there cannot be a cluster.
func (Config) Down(context.Context) error { return nil }

// Health is never good here.
func (c Config) Health(context.Context) error { return c.Check() }

// Pusher has no registry here.
func (c Config) Pusher(context.Context) (*image.Pusher, error) { return nil, c.Check() }

// RuntimeSocket is nowhere here.
func (Config) RuntimeSocket(int) string { return "" }

// KillRuntime has none to kill here.
func (c Config) KillRuntime(int) error { return c.Check() }

// StartRuntime starts nothing here.
func (c Config) StartRuntime(context.Context, int) error { return c.Check() }

// KillNode has none to kill here.
func (c Config) KillNode(int) error { return c.Check() }

// StartNode starts nothing here.
func (c Config) StartNode(context.Context, int) error { return c.Check() }

// Trust has nodes nowhere here.
func (c Config) Trust(string) (func() error, error) { return nil, c.Check() }

// StopAPIServer has none to stop here.
func (c Config) StopAPIServer() error { return c.Check() }

// ContinueAPIServer has none to continue here.
func (c Config) ContinueAPIServer() error { return c.Check() }

// Partition has no network here.
func (c Config) Partition(context.Context, string) error { return c.Check() }

// Heal has no network here.
func (c Config) Heal(context.Context, string) error { return c.Check() }

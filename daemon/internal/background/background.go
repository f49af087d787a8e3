// Package background runs what works beside the workers of a controller.
package background

import (
	"context"
	"sync"
)

// Tasks are run by a manager, all at once. Each is to return when its context ends; the manager waits for that.
type Tasks []func(ctx context.Context)

// NeedLeaderElection is false: each node has its own.
func (Tasks) NeedLeaderElection() bool { return false }

// Start runs the tasks until the last has returned.
func (t Tasks) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, task := range t {
		running.Add(1)
		go func() {
			defer running.Done()
			task(ctx)
		}()
	}
	running.Wait()
	return nil
}

// Package batches makes many writes without hammering at an API server that refuses them.
package batches

import (
	"errors"
	"sync"
)

// most is how many writes are under way at once.
const most = 64

// Run calls do for the items, one first, then twice as many at a time as before. After a batch with an error
// no further one begins. It says how many calls succeeded.
func Run[T any](items []T, do func(T) error) (succeeded int, err error) {
	for size := 1; len(items) > 0; size = min(2*size, most) {
		batch := items[:min(size, len(items))]
		items = items[len(batch):]
		failures := make([]error, len(batch))
		var group sync.WaitGroup
		for i, item := range batch {
			group.Go(func() { failures[i] = do(item) })
		}
		group.Wait()
		for _, failure := range failures {
			if failure == nil {
				succeeded++
			}
		}
		if err := errors.Join(failures...); err != nil {
			return succeeded, err
		}
	}
	return succeeded, nil
}

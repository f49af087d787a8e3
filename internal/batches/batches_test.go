package batches_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/kruisekit/kruisekit/internal/batches"
)

// Batches double, and none begins after a failure.
func TestRun(t *testing.T) {
	items := make([]int, 20)
	for i := range items {
		items[i] = i
	}
	var mu sync.Mutex
	var called []int
	failure := errors.New("refused")
	succeeded, err := batches.Run(items, func(i int) error {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, i)
		if i == 4 { // in the third batch: 3, 4, 5, 6
			return failure
		}
		return nil
	})
	slices.Sort(called)
	if succeeded != 6 || !errors.Is(err, failure) || !slices.Equal(called, items[:7]) {
		t.Errorf("%d succeeded of %v, %v", succeeded, called, err)
	}
	if succeeded, err := batches.Run(items, func(int) error { return nil }); succeeded != 20 || err != nil {
		t.Errorf("%d succeeded, %v", succeeded, err)
	}
	if succeeded, err := batches.Run(nil, func(int) error { return failure }); succeeded != 0 || err != nil {
		t.Errorf("of nothing %d succeeded, %v", succeeded, err)
	}
}

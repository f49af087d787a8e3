// Package batches executes many writes in batches that grow, so that an API server that fails is not asked a thousand
// times.
//
//	Run        for writes that are alike, as the creation of pods: what refuses one refuses all, unless its name is taken
//	Each       for writes to objects of their own: a refusal concerns one item
//	Isolated   for writes in namespaces of their own: any error concerns one item
//
// Items of a batch run in parallel. A panic in one of them is the error of that item.
package batches

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/write"
)

// most is the largest number of items of a batch.
const most = 64

// Run calls do for the items, first for one, then for twice as many at a time as before. No batch starts after one with
// an error, except that an object of the same name exists. It returns how many calls succeeded.
func Run[T any](items []T, do func(T) error) (succeeded int, err error) {
	return run(items, do, func(err error) bool { return !apierrors.IsAlreadyExists(err) })
}

// Each is Run, except that an item whose write is refused stops no other item. Only an error that does not concern one
// request alone stops further batches, as of an API server that is overloaded or does not answer.
func Each[T any](items []T, do func(T) error) (succeeded int, err error) {
	return run(items, do, func(err error) bool {
		var panicked *PanicError
		return !write.IsRefused(err) && !errors.As(err, &panicked)
	})
}

func run[T any](items []T, do func(T) error, stops func(error) bool) (succeeded int, err error) {
	var failures []error
	for size, stopped := 1, false; len(items) > 0 && !stopped; size = min(2*size, most) {
		batch := items[:min(size, len(items))]
		items = items[len(batch):]
		results := make([]error, len(batch))
		var group sync.WaitGroup
		for i, item := range batch {
			group.Add(1)
			go func() {
				defer group.Done()
				results[i] = recovered(item, do)
			}()
		}
		group.Wait()
		for _, failed := range results {
			if failed == nil {
				succeeded++
				continue
			}
			failures = append(failures, failed)
			stopped = stopped || stops(failed)
		}
	}
	return succeeded, errors.Join(failures...)
}

// Isolated is Each for items in namespaces of their own: an error of any kind stops no other item. Where more than the
// size of the largest batch fail one after the other, and not because a write is refused, the API server is taken to be
// down, and no further batch starts. It returns the error of each item; nil also for an item that was not tried.
func Isolated[T any](items []T, do func(T) error) []error {
	results := make([]error, len(items))
	failed := 0
	for begin, size := 0, 1; begin < len(items) && failed < most; size = min(2*size, most) {
		end := min(begin+size, len(items))
		var group sync.WaitGroup
		for i := begin; i < end; i++ {
			group.Add(1)
			go func() {
				defer group.Done()
				results[i] = recovered(items[i], do)
			}()
		}
		group.Wait()
		for _, err := range results[begin:end] {
			if failed++; err == nil || write.IsRefused(err) {
				failed = 0
			}
		}
		begin = end
	}
	return results
}

// PanicError is a panic in the call for one item.
type PanicError struct {
	Value any
	// Place is the file and the line.
	Place string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v, in %s", e.Value, e.Place) }

func recovered[T any](item T, do func(T) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, place()}
		}
	}()
	return do(item)
}

// place returns where the code panicked that is about to recover: the first caller below the machinery of panics.
func place() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for panicking := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicking && !inRuntime {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		panicking = panicking || inRuntime
		if !more {
			return "an unknown place"
		}
	}
}

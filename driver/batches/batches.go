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
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/write"
)

// most is the largest number of items of a batch.
const most = 64

// Results are what the calls for the first items returned, in the order of the items. Items after these were not tried.
type Results []error

// Err joins the errors.
func (r Results) Err() error { return errors.Join(r...) }

// Run calls do for the items, first for one, then for twice as many at a time as before. No batch starts after one with
// an error, except that an object of the same name exists.
func Run[T any](items []T, do func(T) error) Results {
	return run(items, do, func(batch []error) bool {
		return slices.ContainsFunc(batch, func(err error) bool { return err != nil && !apierrors.IsAlreadyExists(err) })
	})
}

// Each is Run, except that an item whose write is refused stops no other item. Only an error that does not concern one
// request alone stops further batches, as of an API server that is overloaded or does not answer.
func Each[T any](items []T, do func(T) error) Results {
	return run(items, do, func(batch []error) bool {
		return slices.ContainsFunc(batch, func(err error) bool {
			var panicked *PanicError
			return err != nil && !write.IsRefused(err) && !errors.As(err, &panicked)
		})
	})
}

// Isolated is Each for items in namespaces of their own: an error of any kind stops no other item. Where more than the
// size of the largest batch fail one after the other, and not because a write is refused, the API server is taken to be
// down, and no further batch starts.
func Isolated[T any](items []T, do func(T) error) Results {
	failed := 0
	return run(items, do, func(batch []error) bool {
		for _, err := range batch {
			if failed++; err == nil || write.IsRefused(err) {
				failed = 0
			}
		}
		return failed >= most
	})
}

func run[T any](items []T, do func(T) error, stops func(batch []error) bool) Results {
	var results Results
	for size, stopped := 1, false; len(results) < len(items) && !stopped; size = min(2*size, most) {
		batch := items[len(results):min(len(results)+size, len(items))]
		errs := make([]error, len(batch))
		var group sync.WaitGroup
		for i, item := range batch {
			group.Add(1)
			go func() {
				defer group.Done()
				errs[i] = Recovered(func() error { return do(item) })
			}()
		}
		group.Wait()
		results, stopped = append(results, errs...), stops(errs)
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

// Recovered returns what a call returns, and a panic as a PanicError.
func Recovered(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, place()}
		}
	}()
	return do()
}

// place returns where the code panicked that is about to recover: the first caller below the machinery of panics.
func place() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)]) // without place and the deferred function
	frame, more := frames.Next()
	for more && strings.HasPrefix(frame.Function, "runtime.") {
		frame, more = frames.Next()
	}
	return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
}

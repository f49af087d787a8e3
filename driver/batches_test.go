package driver_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/driver"
)

func TestBatches(t *testing.T) {
	outage := apierrors.NewServiceUnavailable("later")
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota"))
	taken := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "a")
	type execute = func([]int, func(int) error) driver.Results
	run, each := driver.Alike[int], driver.Each[int]
	cases := map[string]struct {
		execute  execute
		items    int
		failures map[int]error // a nil error panics
		called   int
		want     int
	}{
		"nothing":                             {run, 0, nil, 0, 0},
		"all succeed":                         {run, 20, nil, 20, 20},
		"the first fails":                     {run, 20, map[int]error{0: outage}, 1, 0},
		"one of the third batch fails":        {run, 20, map[int]error{4: outage}, 7, 6},
		"alike: a refusal stops the others":   {run, 20, map[int]error{1: refusal}, 3, 2},
		"alike: a taken name stops no other":  {run, 20, map[int]error{0: taken, 4: taken}, 20, 18},
		"alike: a panic stops the others":     {run, 20, map[int]error{1: nil}, 3, 2},
		"each: nothing":                       {each, 0, nil, 0, 0},
		"each: a refusal stops no other item": {each, 20, map[int]error{0: refusal, 4: refusal}, 20, 18},
		"each: a panic stops no other item":   {each, 20, map[int]error{4: nil}, 20, 19},
		"each: an outage stops the others":    {each, 20, map[int]error{0: refusal, 4: outage}, 7, 5},
		"each: a broken connection, too":      {each, 20, map[int]error{1: errors.New("reset")}, 3, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			items := make([]int, c.items)
			for i := range items {
				items[i] = i
			}
			var mu sync.Mutex
			var called []int
			results := c.execute(items, func(i int) error {
				mu.Lock()
				called = append(called, i)
				mu.Unlock()
				failed, fails := c.failures[i]
				if fails && failed == nil {
					panic("item " + string(rune('0'+i)))
				}
				return failed
			})
			slices.Sort(called)
			succeeded, err := len(results)-failures(results), results.Err()
			if succeeded != c.want || len(results) != c.called || !slices.Equal(called, items[:c.called]) {
				t.Errorf("%d succeeded of %v, want %d of %v", succeeded, called, c.want, items[:c.called])
			}
			if (err == nil) != (len(c.failures) == 0) {
				t.Errorf("got %v", err)
			}
			for i, failed := range c.failures {
				var panicked *driver.PanicError
				switch {
				case failed != nil && !errors.Is(err, failed):
					t.Errorf("the error %v of item %d is not in %v", failed, i, err)
				case failed == nil && (!errors.As(err, &panicked) || !strings.HasPrefix(panicked.Place, "batches_test.go:")):
					t.Errorf("the panic of item %d is not in %v", i, err)
				}
			}
		})
	}
}

// A namespace that fails stops no other, whatever fails there; an API server that is down is not asked for each.
func TestIsolated(t *testing.T) {
	outage := errors.New("failed calling webhook")
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("quota"))
	cases := map[string]struct {
		items  int
		fails  func(int) error // panics where it returns errPanic
		called int
		failed int
	}{
		"nothing":                {0, nil, 0, 0},
		"the first ones fail":    {500, func(i int) error { return on(i < 60, outage) }, 500, 60},
		"every other one fails":  {500, func(i int) error { return on(i%2 == 0, outage) }, 500, 250},
		"all are refused":        {500, func(int) error { return refusal }, 500, 500},
		"panics":                 {20, func(i int) error { return on(i == 3, errPanic) }, 20, 1},
		"the API server is down": {5000, func(int) error { return outage }, 127, 127},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			items := make([]int, c.items)
			for i := range items {
				items[i] = i
			}
			var mu sync.Mutex
			called := 0
			errs := driver.Isolated(items, func(i int) error {
				mu.Lock()
				called++
				mu.Unlock()
				err := c.fails(i)
				if errors.Is(err, errPanic) {
					panic(err)
				}
				return err
			})
			failed := failures(errs)
			if called != c.called || failed != c.failed || len(errs) != c.called {
				t.Errorf("%d calls, want %d; %d failed, want %d", called, c.called, failed, c.failed)
			}
		})
	}
}

func failures(results driver.Results) int {
	return len(slices.DeleteFunc(slices.Clone(results), func(err error) bool { return err == nil }))
}

var errPanic = errors.New("a panic")

func on(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

package batches_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/internal/batches"
)

func TestBatches(t *testing.T) {
	outage := apierrors.NewServiceUnavailable("later")
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota"))
	type execute = func([]int, func(int) error) (int, error)
	run, each := batches.Run[int], batches.Each[int]
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
			succeeded, err := c.execute(items, func(i int) error {
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
			if succeeded != c.want || !slices.Equal(called, items[:c.called]) {
				t.Errorf("%d succeeded of %v, want %d of %v", succeeded, called, c.want, items[:c.called])
			}
			if (err == nil) != (len(c.failures) == 0) {
				t.Errorf("got %v", err)
			}
			for i, failed := range c.failures {
				var panicked *batches.PanicError
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

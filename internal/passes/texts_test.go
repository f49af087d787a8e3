package passes_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kruisekit/kruisekit/internal/passes"
)

func TestTexts(t *testing.T) {
	var of passes.Texts[string]
	of.First("web", "a")
	first := []bool{of.First("web", "a"), of.First("web", "b"), of.First("web", "a"), of.First("db", "a")}
	if want := []bool{false, true, false, true}; !slices.Equal(first, want) {
		t.Errorf("first: got %v, want %v", first, want)
	}
	var changed []bool
	for _, text := range []string{"", "a", "a", "b", "a", "", "a"} {
		changed = append(changed, of.Changed("web", text))
	}
	if want := []bool{false, true, false, true, true, false, true}; !slices.Equal(changed, want) {
		t.Errorf("changed: got %v, want %v", changed, want)
	}
	of.Forget("web")
	if !of.First("web", "a") || !of.Changed("web", "a") || of.First("db", "a") {
		t.Error("only the texts of one object are dropped")
	}
}

func TestManyAtOnce(t *testing.T) {
	var of passes.Texts[int]
	var group sync.WaitGroup
	var firsts atomic.Int32
	for range 50 {
		group.Add(1)
		go func() {
			defer group.Done()

			if of.First(1, "a") {
				firsts.Add(1)
			}
		}()
	}
	if group.Wait(); firsts.Load() != 1 {
		t.Errorf("%d calls were the first", firsts.Load())
	}
}

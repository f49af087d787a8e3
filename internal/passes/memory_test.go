package passes_test

import (
	"sync"
	"testing"

	"github.com/kruisekit/kruisekit/internal/passes"
)

func TestMemory(t *testing.T) {
	var m passes.Memory[string, int]
	if got := m.Recall("web"); got != 0 {
		t.Errorf("an object of which nothing is known: %d", got)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			m.Note("web", func(n *int) { *n++ })
		}()
	}
	wait.Wait()
	if got := m.Recall("web"); got != 8 {
		t.Errorf("concurrent notes: %d, want 8", got)
	}
	if got := m.Recall("db"); got != 0 {
		t.Errorf("another object: %d", got)
	}
	m.Forget("web")
	if got := m.Recall("web"); got != 0 {
		t.Errorf("after Forget: %d", got)
	}
}

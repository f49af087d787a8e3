package turns_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/turns"
)

func TestTurns(t *testing.T) {
	all := turns.New()
	var group sync.WaitGroup
	counts := make([]int, 3)
	for i := range 300 {
		group.Add(1)
		go func() {
			defer group.Done()
			defer all.Take(fmt.Sprint(i % 3))()
			counts[i%3]++ // the race detector reports two at a time
		}()
	}
	group.Wait()
	if fmt.Sprint(counts) != "[100 100 100]" {
		t.Errorf("counts %v", counts)
	}
}

package workloads

import (
	"testing"
	"time"
)

func TestPauseOf(t *testing.T) {
	for pods, want := range map[int]time.Duration{
		0: 0, 99: 0, 100: 10 * time.Millisecond, 1000: 100 * time.Millisecond, 10_000: time.Second,
		1_000_000: time.Second,
	} {
		if got := pauseOf(pods); got != want {
			t.Errorf("%d pods: %s, want %s", pods, got, want)
		}
	}
}

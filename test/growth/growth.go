// Package growth tests that the cost of work grows in proportion to its size, and not with the square of it, as what a
// user of one namespace can store must not stop the manager for the others.
//
//	growth.Linear(t, 500, 20, func(n int) func() {
//		pod := podOf(n)
//		return func() { inject(pod) }
//	})
//
// Cost is the processor time of the process, to which other processes of a busy machine add nothing. Work may use
// several goroutines. Tests that run in parallel with others of their package cannot be measured so.
//
// The garbage collector is off during a measurement, which starts with memory of which none is free. A fresh page costs
// ten times as much as a page that the collector has freed: small work on freed pages and large work on fresh ones
// would look like a square.
package growth

import (
	"math"
	"runtime/debug"
	"testing"
	"time"
)

const (
	// tolerance is how many times more than in proportion large work may cost: caches, the garbage collector and
	// logarithms are allowed for.
	tolerance = 5
	// samples are how often work is measured before its cost counts.
	samples = 5
	// least is the processor time below which work is repeated within a sample: the clock is too coarse for less.
	least = 5 * time.Millisecond
)

// Linear fails the test if work of times the size n costs far more than times as much as work of the size n. prepare
// returns the work of a size, which can be done again and again. For a square to be seen, times must be 10 or more.
func Linear(t *testing.T, n, times int, prepare func(n int) (work func())) {
	t.Helper()
	if tolerance*2 > times {
		t.Fatalf("a square of %d times the size would not be seen", times)
	}
	small := Cost(prepare(n))
	limit, large, best := tolerance*time.Duration(times)*small, prepare(times*n), time.Duration(math.MaxInt64)
	defer withoutCollector()()
	for range samples {
		if best = min(best, sample(large)); best <= limit {
			return
		}
	}
	t.Errorf("work of the size %d costs %s, and of %d times the size %s", n, small, times, best)
}

// Cost returns the processor time of work: that of the cheapest of some samples.
func Cost(work func()) time.Duration {
	defer withoutCollector()()
	best := time.Duration(math.MaxInt64)
	for range samples {
		best = min(best, sample(work))
	}
	return best
}

// withoutCollector returns free memory to the system and turns the garbage collector off until restore is called.
func withoutCollector() (restore func()) {
	percent := debug.SetGCPercent(-1)
	debug.FreeOSMemory()
	return func() { debug.SetGCPercent(percent) }
}

// sample does work once, or often enough for the clock, and returns the processor time for each time.
func sample(work func()) time.Duration {
	begun := used()
	for done := 1; ; done++ {
		work()
		if spent := used() - begun; spent >= least {
			return spent / time.Duration(done)
		}
	}
}

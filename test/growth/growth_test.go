package growth

import (
	"testing"
	"time"
)

// spin uses the processor in proportion to n.
func spin(n int) {
	sum := 0
	for i := range n * 1000 {
		sum += i ^ sum
	}
	sink = sum
}

var sink int

func TestLinear(t *testing.T) {
	Linear(t, 100, 20, func(n int) func() { return func() { spin(n) } })
}

// A square is seen, and the time in which the process does not run is not counted.
func TestCost(t *testing.T) {
	square := func(n int) func() { return func() { spin(n * n / 10) } }
	if small, large := Cost(square(10)), Cost(square(200)); large < 200*small {
		t.Errorf("400 times the work costs %s, and once %s", large, small)
	}
	if asleep := Cost(func() {
		<-time.NewTimer(20 * time.Millisecond).C
		spin(1000)
	}); asleep > 15*time.Millisecond {
		t.Errorf("work that sleeps costs %s", asleep)
	}
}

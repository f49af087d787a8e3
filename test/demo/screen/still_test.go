package screen_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/demo/screen"
)

// counter counts frames.
type counter int

func (c *counter) Draw(screen.Frame) error {
	*c++
	return nil
}

// Of the recorded rollout, the last frame is kept in which both workloads are under way and all there is to see is
// seen.
func TestStill(t *testing.T) {
	drawn := counter(0)
	still := &screen.Still{Next: &drawn}
	for _, f := range rollout() {
		if err := still.Draw(f); err != nil {
			t.Fatal(err)
		}
	}
	if int(drawn) != len(rollout()) {
		t.Errorf("%d of %d frames were passed on", drawn, len(rollout()))
	}
	if f := still.Frame(); f.Step != 2 || f.Elapsed != 2200*time.Millisecond {
		t.Errorf("kept step %d at %s, want step 2 at 2.2s", f.Step, f.Elapsed)
	}
}

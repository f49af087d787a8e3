package imagepull

import (
	"context"
	"testing"
	"time"
)

// A panic in the pull of an image fails that attempt, and no other pull.
func TestPanicOfAPull(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images.pull = func(_ context.Context, c call) (string, error) {
			if c.reference == "odd:1" {
				panic("an odd manifest")
			}
			return "sha256:1", nil
		}
		w.begin()
		w.spec(asks("odd:1", 0, limited(0)), asks("nginx:1", 0))
		w.wait(time.Minute)
		w.wants("nginx:1 v0 Succeeded, odd:1 v0 Failed")
	})
}

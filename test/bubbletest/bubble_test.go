package bubbletest_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// An hour of the bubble takes no time.
func TestBubble(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		passed := false
		begin := time.Now()
		time.AfterFunc(time.Hour, func() { passed = true })
		time.Sleep(time.Hour) //nolint:forbidigo // the time of the bubble
		bubbletest.Wait()
		if !passed || time.Since(begin) != time.Hour {
			t.Errorf("after %s the timer of an hour ran: %t", time.Since(begin), passed)
		}
	})
}

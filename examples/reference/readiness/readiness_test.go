package readiness_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kruisekit/kruisekit/examples/reference/readiness"
)

// Each reason is logged once without -v, and a reason with a number in it once in ten seconds.
func TestLogged(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	var reason error
	check := readiness.Logged("webhook-ready", func(*http.Request) error { return reason }, logger, clock)
	probe := func(after time.Duration, err error) {
		clock.SetTime(clock.Now().Add(after))
		reason = err
		if got := check(nil); !errors.Is(got, err) {
			t.Errorf("answered %v, want %v", got, err)
		}
	}
	caches := errors.New("caches are not synced")
	probe(0, nil)
	for range 100 {
		probe(time.Second, caches)
	}
	for port := range strings.SplitSeq("0123456789", "") {
		probe(time.Second, errors.New("dial port "+port))
	}
	probe(10*time.Second, nil)
	probe(time.Second, caches)
	probe(time.Second, nil)

	want := []string{"caches are not synced", "dial port 0", "check succeeded"}
	if !slices.EqualFunc(lines, want, strings.Contains) {
		t.Errorf("logged %q, want lines with %q", lines, want)
	}
}

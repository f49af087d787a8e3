package cluster

import (
	"context"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// Eventually fails the test unless a check passes within two minutes.
func Eventually(t testing.TB, check func(context.Context) error) {
	t.Helper()
	Within(t, 2*time.Minute, check)
}

// Within fails the test unless a check passes in time.
func Within(t testing.TB, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}

// FreePort returns a free port of this machine.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

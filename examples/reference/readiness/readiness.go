// Package readiness logs why a process is not ready. A probe sees a status alone, and controller-runtime logs the
// reason only with a higher verbosity.
package readiness

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// atMost is the least time between two lines about one check. A reason that differs at each probe, as one with a port,
// logs no more.
const atMost = 10 * time.Second

// Logged returns a check that does what another one does, and logs each change of the reason. The first line is about a
// check that fails.
func Logged(name string, check healthz.Checker, logger logr.Logger, c clock.PassiveClock) healthz.Checker {
	l := &logged{check: check, logger: logger.WithValues("check", name), clock: c}
	return l.ask
}

type logged struct {
	check  healthz.Checker
	logger logr.Logger
	clock  clock.PassiveClock

	mu     sync.Mutex
	reason string
	at     time.Time
}

func (l *logged) ask(r *http.Request) error {
	err := l.check(r)
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if reason == l.reason || now.Sub(l.at) < atMost {
		return err
	}
	l.reason, l.at = reason, now
	if reason == "" {
		l.logger.Info("Readiness check succeeded")
	} else {
		l.logger.Info("Readiness check failed", "reason", reason)
	}
	return err
}

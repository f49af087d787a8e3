package stopping

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/containerrestart"
)

// What becomes of a hook.
const (
	hookDone   = "done"
	hookFailed = "failed"
	hookCut    = "cut"
)

// metrics count what workers do.
type metrics struct {
	stops, hooks *prometheus.CounterVec
}

func newMetrics(by string, to prometheus.Registerer) (*metrics, error) {
	labels := prometheus.Labels{"by": by}
	m := &metrics{
		stops: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_daemon_container_stops_total", ConstLabels: labels,
			Help: "Containers that were to be stopped, by who asked for it and what became of it: stopped, failed or canceled.",
		}, []string{"outcome"}),
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_daemon_prestop_hooks_total", ConstLabels: labels,
			Help: "Hooks that were run before a container was stopped, by what became of it: done, failed, " +
				"or cut by the end of the grace period.",
		}, []string{"kind", "outcome"}),
	}
	if to == nil {
		return m, nil
	}
	for _, vec := range []**prometheus.CounterVec{&m.stops, &m.hooks} {
		if err := register(to, vec); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// register takes over what other workers of the same name has registered.
func register(to prometheus.Registerer, vec **prometheus.CounterVec) error {
	err := to.Register(*vec)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if old, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
			*vec = old
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

func (m *metrics) stopped(err error) {
	outcome := "stopped"
	switch {
	case errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	}
	m.stops.WithLabelValues(outcome).Inc()
}

func (m *metrics) hook(h *containerrestart.Hook, outcome string) {
	m.hooks.WithLabelValues(kindOf(h), outcome).Inc()
}

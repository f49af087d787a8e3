package stopping

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/containerrestart"
)

// metrics count what workers do.
type metrics struct {
	stops, hooks *prometheus.CounterVec
}

func newMetrics(by string, to prometheus.Registerer) (metrics, error) {
	labels := prometheus.Labels{"by": by}
	m := metrics{
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
	if err := errors.Join(to.Register(m.stops), to.Register(m.hooks)); err != nil {
		return metrics{}, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

func (m metrics) stopped(err error) {
	outcome := "stopped"
	switch {
	case errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	}
	m.stops.WithLabelValues(outcome).Inc()
}

// kindOf is what kind of hook it is.
func kindOf(h *containerrestart.Hook) string {
	switch {
	case h.Exec != nil:
		return "exec"
	case h.HTTP != nil:
		return "http"
	case h.Sleep != nil:
		return "sleep"
	default:
		return "invalid"
	}
}

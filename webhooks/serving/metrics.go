package serving

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons of refusals, as the metric names them.
const (
	largeBody     = "body"
	lateBody      = "time"
	busyMemory    = "memory"
	noCertificate = "certificate"
)

// requestMetrics count refused requests and show what requests take.
type requestMetrics struct {
	refused *prometheus.CounterVec
	memory  prometheus.Gauge
}

func newRequestMetrics(registerer prometheus.Registerer, limit int64) (requestMetrics, error) {
	refused, err := register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_webhook_refused_total",
		Help: "Requests that the webhook server refused, by the limit or check that they did not pass.",
	}, []string{"reason"}))
	memory, errMemory := register(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruisekit_webhook_memory_bytes",
		Help: "Estimated memory of requests to the webhook server now.",
	}))
	most, errLimit := register(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruisekit_webhook_memory_limit_bytes",
		Help: "Limit of the estimated memory of all requests to the webhook server.",
	}))
	most.Set(float64(limit))
	for _, r := range []string{largeBody, lateBody, busyMemory, noCertificate} {
		refused.WithLabelValues(r)
	}
	return requestMetrics{refused, memory}, errors.Join(err, errMemory, errLimit)
}

// connectionMetrics count the connections of one listener.
type connectionMetrics struct {
	open    prometheus.Gauge
	refused prometheus.Counter
}

func newConnectionMetrics(registerer prometheus.Registerer, listener string) (connectionMetrics, error) {
	open, err := register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_connections",
		Help: "Open connections of a listener, without those from the loopback.",
	}, []string{"listener"}))
	refused, errRefused := register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_connections_refused_total",
		Help: "Connections that a listener refused.",
	}, []string{"listener"}))
	m := connectionMetrics{open.WithLabelValues(listener), refused.WithLabelValues(listener)}
	return m, errors.Join(err, errRefused)
}

// register returns the collector, or the one that another server has registered. It registers nothing without a
// registerer.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) (C, error) {
	if registerer == nil {
		return c, nil
	}
	err := registerer.Register(c)
	if other := (prometheus.AlreadyRegisteredError{}); errors.As(err, &other) {
		if same, ok := other.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	return c, err //nolint:wrapcheck // the callers do
}

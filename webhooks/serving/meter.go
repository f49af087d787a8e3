package serving

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// reason of a refusal, as the metric names it.
type reason string

const (
	largeBody       reason = "body"
	lateBody        reason = "time"
	busyMemory      reason = "memory"
	busyRequests    reason = "requests"
	busyConnections reason = "connections"
	noCertificate   reason = "certificate"
	foreignClient   reason = "client"
)

// meter counts refusals; nil counts nothing.
type meter map[reason]prometheus.Counter

func newMeter(registerer prometheus.Registerer) (meter, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // refused accepts nil
	}
	refusals, err := register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_webhook_refused_total",
		Help: "Requests and connections that the webhook server refused, by the limit or check that they did not pass.",
	}, []string{"reason"}))
	if err != nil {
		return nil, err
	}
	m := meter{}
	for _, r := range []reason{largeBody, lateBody, busyMemory, busyRequests, busyConnections, noCertificate, foreignClient} {
		m[r] = refusals.WithLabelValues(string(r))
	}
	return m, nil
}

// register returns the collector, or the one that another server has registered.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) (C, error) {
	err := registerer.Register(c)
	if other := (prometheus.AlreadyRegisteredError{}); errors.As(err, &other) {
		if same, ok := other.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("register metric: %w", err)
	}
	return c, nil
}

func (m meter) refused(r reason) {
	if m != nil {
		m[r].Inc()
	}
}

// counts are the metrics of one listener; the zero value has none.
type counts struct {
	known, unknown prometheus.Gauge
	refusals       prometheus.Counter
	// more is counted with each refusal.
	more func()
}

func newCounts(registerer prometheus.Registerer, listener string) (counts, error) {
	if registerer == nil {
		return counts{}, nil
	}
	open, err := register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_connections",
		Help: "Open connections of a listener, by whether the client is known.",
	}, []string{"listener", "client"}))
	if err != nil {
		return counts{}, err
	}
	refusals, err := register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_connections_refused_total",
		Help: "Connections of a listener that were refused, or closed for newer ones.",
	}, []string{"listener"}))
	if err != nil {
		return counts{}, err
	}
	return counts{
		known: open.WithLabelValues(listener, "known"), unknown: open.WithLabelValues(listener, "unknown"),
		refusals: refusals.WithLabelValues(listener),
	}, nil
}

func (c counts) refuse() {
	if c.refusals != nil {
		c.refusals.Inc()
	}
	if c.more != nil {
		c.more()
	}
}

// show shows what is open.
func (c counts) show(now *connections) {
	if c.known != nil {
		c.known.Set(float64(now.all - now.strangers))
		c.unknown.Set(float64(now.strangers))
	}
}

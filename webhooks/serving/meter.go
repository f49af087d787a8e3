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
	busyNamespace   reason = "namespace"
	busyConnections reason = "connections"
	noCertificate   reason = "certificate"
	foreignClient   reason = "client"
)

// meter counts refusals and shows what requests hold; without a registerer it does neither.
type meter struct {
	refusals           map[reason]prometheus.Counter
	running, waiting   prometheus.Gauge
	small, large, most prometheus.Gauge
}

func newMeter(registerer prometheus.Registerer) (meter, error) {
	if registerer == nil {
		return meter{}, nil
	}
	refusals, err := register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_webhook_refused_total",
		Help: "Requests and connections that the webhook server refused, by the limit or check that they did not pass.",
	}, []string{"reason"}))
	if err != nil {
		return meter{}, err
	}
	requests, err := register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_webhook_requests",
		Help: "Requests to the webhook server now, by their state: waiting for others of their namespace, or running.",
	}, []string{"state"}))
	if err != nil {
		return meter{}, err
	}
	memory, err := register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_webhook_memory_bytes",
		Help: "Estimated memory of requests to the webhook server now, by the size of the requests.",
	}, []string{"size"}))
	if err != nil {
		return meter{}, err
	}
	most, err := register(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruisekit_webhook_memory_limit_bytes",
		Help: "Limit of the estimated memory of all requests to the webhook server.",
	}))
	if err != nil {
		return meter{}, err
	}
	m := meter{
		refusals: map[reason]prometheus.Counter{},
		running:  requests.WithLabelValues("running"), waiting: requests.WithLabelValues("waiting"),
		small: memory.WithLabelValues("small"), large: memory.WithLabelValues("large"), most: most,
	}
	for _, r := range []reason{
		largeBody, lateBody, busyMemory, busyRequests, busyNamespace, busyConnections, noCertificate, foreignClient,
	} {
		m.refusals[r] = refusals.WithLabelValues(string(r))
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
	if m.refusals != nil {
		m.refusals[r].Inc()
	}
}

// limit shows the limit of the memory.
func (m meter) limit(memory int64) {
	if m.most != nil {
		m.most.Set(float64(memory))
	}
}

// show shows what requests hold.
func (m meter) show(now held, waiting int) {
	if m.running != nil {
		m.running.Set(float64(now.requests - waiting))
		m.waiting.Set(float64(waiting))
		m.small.Set(float64(now.memory - now.large))
		m.large.Set(float64(now.large))
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

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
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_webhook_refused_total",
		Help: "Requests and connections that the webhook server refused, by the limit or check that they did not pass.",
	}, []string{"reason"})
	err := registerer.Register(refused)
	if other := (prometheus.AlreadyRegisteredError{}); errors.As(err, &other) {
		if same, ok := other.ExistingCollector.(*prometheus.CounterVec); ok {
			refused, err = same, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("register metric: %w", err)
	}
	m := meter{}
	for _, r := range []reason{largeBody, lateBody, busyMemory, busyRequests, busyConnections, noCertificate, foreignClient} {
		m[r] = refused.WithLabelValues(string(r))
	}
	return m, nil
}

func (m meter) refused(r reason) {
	if m != nil {
		m[r].Inc()
	}
}

package awaited

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/internal/metrics"
)

// Gauge is 1 for each part that is left out, and 0 for the others.
type Gauge struct{ of *prometheus.GaugeVec }

// NewGauge registers a gauge with one label, the name of a part. Without a registerer it is not exported.
func NewGauge(registerer prometheus.Registerer, o prometheus.GaugeOpts, label string) (Gauge, error) {
	gauge := prometheus.NewGaugeVec(o, []string{label})
	if registerer == nil {
		return Gauge{gauge}, nil
	}
	gauge, err := metrics.Register(registerer, gauge)
	return Gauge{gauge}, err
}

// Set reports whether a part is left out.
func (g Gauge) Set(name string, leftOut bool) {
	value := 0.0
	if leftOut {
		value = 1
	}
	g.of.WithLabelValues(name).Set(value)
}

package metrics

import "github.com/prometheus/client_golang/prometheus"

// LeftOut is 1 for each part that is left out, and 0 for the others.
type LeftOut struct{ of *prometheus.GaugeVec }

// NewLeftOut registers a gauge with one label, the name of a part. Without a registerer it is not exported.
func NewLeftOut(registerer prometheus.Registerer, o prometheus.GaugeOpts, label string) (LeftOut, error) {
	gauge := prometheus.NewGaugeVec(o, []string{label})
	if registerer == nil {
		return LeftOut{gauge}, nil
	}
	gauge, err := Register(registerer, gauge)
	return LeftOut{gauge}, err
}

// Set sets the gauge of a part.
func (l LeftOut) Set(name string, leftOut bool) {
	value := 0.0
	if leftOut {
		value = 1
	}
	l.of.WithLabelValues(name).Set(value)
}

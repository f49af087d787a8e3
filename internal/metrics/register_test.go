package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/internal/metrics"
)

// A second part of a process counts with the first one; another metric of the name is an error.
func TestRegister(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := prometheus.CounterOpts{Name: "kruisekit_test_total", Help: "Of the test."}
	first, err := metrics.Register(registry, prometheus.NewCounter(o))
	if err != nil {
		t.Fatal(err)
	}
	second, err := metrics.Register(registry, prometheus.NewCounter(o))
	if err != nil || second != first {
		t.Errorf("the second is another one: %v", err)
	}
	if _, err := metrics.Register(registry, prometheus.NewGauge(prometheus.GaugeOpts(o))); err == nil {
		t.Error("a gauge has the name of a counter")
	}
}

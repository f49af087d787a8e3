package awaited

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/metrics"
)

// Record has the parts of a manager that wait. Its zero value has none, and so has nil.
type Record struct {
	mu    sync.Mutex
	parts *Parts
}

// Add adds the runnable of parts that wait to a manager. Without parts it does nothing.
func (r *Record) Add(ctx context.Context, mgr ctrl.Manager, parts []Part) error {
	if len(parts) == 0 {
		return nil
	}
	waiting, err := For(ctx, mgr, parts, Options{})
	if err != nil {
		return err
	}
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.parts = waiting
	}
	if err := mgr.Add(waiting); err != nil {
		return fmt.Errorf("add what waits for kinds: %w", err)
	}
	return nil
}

// Names returns the parts that are not added, sorted.
func (r *Record) Names() []string {
	if parts := r.recorded(); parts != nil {
		return parts.Names()
	}
	return nil
}

// Check is that of Parts.
func (r *Record) Check() error {
	if parts := r.recorded(); parts != nil {
		return parts.Check()
	}
	return nil
}

func (r *Record) recorded() *Parts {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts
}

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

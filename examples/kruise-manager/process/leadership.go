package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// leadership shows who leads. It runs on every replica.
type leadership struct{ elected <-chan struct{} }

// NeedLeaderElection is false: who does not lead says so.
func (*leadership) NeedLeaderElection() bool { return false }

// Start is 0 until elected, 1 until the end: a process that loses its lease ends.
func (l *leadership) Start(ctx context.Context) error {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruise_manager_is_leader", Help: "1 while this process runs the controllers.",
	})
	err := metrics.Registry.Register(gauge)
	if registered := (prometheus.AlreadyRegisteredError{}); errors.As(err, &registered) {
		return nil // another manager in the same process, which only tests have
	}
	if err != nil {
		return fmt.Errorf("register metric: %w", err)
	}
	defer metrics.Registry.Unregister(gauge)
	select {
	case <-ctx.Done():
		return nil
	case <-l.elected:
	}
	gauge.Set(1)
	<-ctx.Done()
	return nil
}

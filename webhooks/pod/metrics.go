package pod

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/internal/metrics"
)

// meters measure the steps.
type meters struct {
	seconds []prometheus.Observer
	ended   [][outcomes]prometheus.Counter
}

// newMeters returns nil without a registerer.
func newMeters(registerer prometheus.Registerer, steps []Step) (*meters, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // record accepts nil
	}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "kruisekit_pod_webhook_step_duration_seconds",
		Help:    "How long a step took over a new pod.",
		Buckets: prometheus.ExponentialBuckets(10e-6, 4, 9), // to 0.65 seconds
	}, []string{"step"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_pod_webhook_steps_total",
		Help: "Steps over new pods by how they ended: skipped, changed, lacking a set that may be missing, refused.",
	}, []string{"step", "outcome"})
	var err error
	if seconds, err = metrics.Register(registerer, seconds); err != nil {
		return nil, err
	}
	if ended, err = metrics.Register(registerer, ended); err != nil {
		return nil, err
	}
	m := &meters{}
	for _, s := range steps {
		m.seconds = append(m.seconds, seconds.WithLabelValues(s.Name))
		var all [outcomes]prometheus.Counter
		for o := range outcomes {
			all[o] = ended.WithLabelValues(s.Name, o.String())
		}
		m.ended = append(m.ended, all)
	}
	return m, nil
}

func (m *meters) record(step int, took time.Duration, o outcome) {
	if m == nil {
		return
	}
	m.seconds[step].Observe(took.Seconds())
	m.ended[step][o].Inc()
}

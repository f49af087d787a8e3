package imagepull

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds the metrics of image pulls. No metric has an image label: the number of images is unbounded.
type metrics struct {
	pulls    *prometheus.CounterVec
	attempts *prometheus.CounterVec
	seconds  prometheus.Histogram
	running  prometheus.Gauge
	waiting  prometheus.Gauge
}

// newMetrics registers the metrics with to. If to is nil, the metrics are not registered, and the disk gauges are
// left out.
func newMetrics(to prometheus.Registerer, disk *space) (*metrics, error) {
	m := &metrics{
		pulls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_daemon_image_pulls_total", Help: "Pulls that have ended, by phase.",
		}, []string{"phase"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_daemon_image_pull_attempts_total", Help: "Attempts that have ended, by result.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kruise_daemon_image_pull_duration_seconds", Help: "How long attempts took that pulled an image.",
			Buckets: prometheus.ExponentialBuckets(0.25, 2, 13), // 0.25 s to 1024 s; default timeout 600 s
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kruise_daemon_image_pulls_running", Help: "Attempts under way.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kruise_daemon_image_pulls_waiting", Help: "Pulls that have not ended and are not being tried.",
		}),
	}
	if to == nil {
		return m, nil
	}
	free := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kruise_daemon_image_filesystem_free_ratio",
		Help: "Free share of the file system of images, of bytes or of inodes, whichever is less.",
	}, disk.free)
	bound := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kruise_daemon_image_filesystem_min_free_ratio",
		Help: "Share of the file system of images that pulls leave free; 0 where no bound holds.",
	}, disk.bound)
	var faults []error
	for _, c := range []prometheus.Collector{m.pulls, m.attempts, m.seconds, m.running, m.waiting, free, bound} {
		faults = append(faults, to.Register(c))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// attempted counts an attempt by its result. Only an attempt that pulled an image is part of the durations.
func (m *metrics) attempted(o outcome, took time.Duration) {
	m.attempts.WithLabelValues(o.result).Inc()
	if o.result == resultPulled {
		m.seconds.Observe(took.Seconds())
	}
}

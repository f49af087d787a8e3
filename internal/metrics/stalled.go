package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostReasons bounds the reasons of a kind, mostLetters the length of one.
	mostReasons = 32
	mostLetters = 64
	other       = "other"
)

// Reason is why an object stands still.
type Reason struct {
	// Status is True where an object must change first, Unknown where the workload waits.
	Status string
	// Code is the reason in one word; empty for an object that does not stand still.
	Code string
}

// state is what is kept of an object. An object of the zero value is not kept.
type state struct {
	reason Reason
	// behind is since when the status describes an older spec.
	behind time.Time
}

// Stalled are those of all kinds of a process.
type Stalled struct {
	stalled, behind *prometheus.Desc

	mu    sync.Mutex
	kinds map[string]*ofKind
}

// ofKind are the workloads of a kind.
type ofKind struct {
	objects map[types.NamespacedName]state
	// reasons are the codes that have been seen.
	reasons map[string]bool
	// now is the clock where the kind is followed.
	now func() time.Time
}

// RegisterStalled registers the metrics, or returns those that another part of the process has registered. Without a
// registerer nothing is exported.
func RegisterStalled(registerer prometheus.Registerer) (*Stalled, error) {
	m := &Stalled{
		stalled: prometheus.NewDesc("kruisekit_workloads_stalled",
			"Workloads that stand still, by the status and the reason of their condition Stalled.",
			[]string{"kind", "status", "reason"}, nil),
		behind: prometheus.NewDesc("kruisekit_oldest_unobserved_generation_seconds",
			"How long the status of an object of the kind has spoken of an older spec; 0 where every status is up to date.",
			[]string{"kind"}, nil),
		kinds: map[string]*ofKind{},
	}
	if registerer == nil {
		return m, nil
	}
	return Register(registerer, m)
}

// Set keeps why an object stands still. The zero reason is for one that does not, or is gone.
func (m *Stalled) Set(kind string, name types.NamespacedName, reason Reason) {
	m.keep(kind, name, func(s *state) { s.reason = reason })
}

func (m *Stalled) keep(kind string, name types.NamespacedName, change func(*state)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of(kind)
	s := of.objects[name]
	change(&s)
	if s == (state{}) {
		delete(of.objects, name)
		return
	}
	s.reason.Code = of.bounded(s.reason.Code)
	of.objects[name] = s
}

// bounded is a code, or other.
func (w *ofKind) bounded(code string) string {
	switch {
	case code == "" || w.reasons[code]:
		return code
	case len(w.reasons) >= mostReasons || len(code) > mostLetters:
		return other
	}
	w.reasons[code] = true
	return code
}

// of are the workloads of a kind. It must be called with the lock.
func (m *Stalled) of(kind string) *ofKind {
	if m.kinds[kind] == nil {
		m.kinds[kind] = &ofKind{objects: map[types.NamespacedName]state{}, reasons: map[string]bool{}}
	}
	return m.kinds[kind]
}

// Describe implements prometheus.Collector.
func (m *Stalled) Describe(out chan<- *prometheus.Desc) { out <- m.stalled; out <- m.behind }

// Collect implements prometheus.Collector.
func (m *Stalled) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for kind, of := range m.kinds {
		counts, oldest := map[Reason]int{}, time.Duration(0)
		for _, s := range of.objects {
			if s.reason.Code != "" {
				counts[s.reason]++
			}
			if !s.behind.IsZero() {
				oldest = max(oldest, of.now().Sub(s.behind))
			}
		}
		for reason, n := range counts {
			labels := []string{kind, reason.Status, reason.Code}
			out <- prometheus.MustNewConstMetric(m.stalled, prometheus.GaugeValue, float64(n), labels...)
		}
		if of.now != nil {
			out <- prometheus.MustNewConstMetric(m.behind, prometheus.GaugeValue, oldest.Seconds(), kind)
		}
	}
}

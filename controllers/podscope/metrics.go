package podscope

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
)

// meters measure the entries of one webhook. Notes are those of the webhook of new pods alone.
type meters struct {
	webhook string
	entries *prometheus.GaugeVec
	writes  *prometheus.CounterVec
	repairs prometheus.Counter
	notes   *prometheus.GaugeVec
}

// newMeters returns meters, which are not exported without a registerer.
func newMeters(registerer prometheus.Registerer, webhook string) (*meters, error) {
	if registerer == nil {
		registerer = prometheus.NewRegistry()
	}
	m := &meters{webhook: webhook}
	var all [4]error
	m.entries, all[0] = metrics.Register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_pod_scope_entries",
		Help: "Entries of a webhook configuration of pods, which API servers evaluate for each request.",
	}, []string{"webhook"}))
	m.writes, all[1] = metrics.Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_writes_total",
		Help: "Writes of the webhook configurations of pods. " +
			"API servers compile all conditions of a configuration again after each.",
	}, []string{"webhook"}))
	m.repairs, all[2] = metrics.Register(registerer, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_repairs_total",
		Help: "Writes of entries of the pod webhooks that another writer had changed or removed.",
	}))
	m.notes, all[3] = metrics.Register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_pod_scope_notes",
		Help: "Notes about the entries of the pod webhook by their code: entries that are wider than the sets, " +
			"that other writers changed, or that a former installation left.",
	}, []string{"code"}))
	return m, errors.Join(all[:]...)
}

// observe measures what is wanted.
func (m *meters) observe(want []entry, notes []note.Note) {
	m.entries.WithLabelValues(m.webhook).Set(float64(len(want)))
	if m.webhook != webhookPods {
		return
	}
	for _, code := range []string{
		scope.NoteUnreadable, scope.NoteWidened, notePolicy, noteCatchAll, noteNoAuthority,
	} {
		m.notes.WithLabelValues(code).Set(0)
	}
	for i := range notes {
		m.notes.WithLabelValues(notes[i].Code).Inc()
	}
}

// wrote counts a write: of the entries, or where these were as planned of provisional ones.
func (m *meters) wrote(p pass) {
	webhook := m.webhook
	if p.planned {
		webhook = "provisional"
	}
	m.writes.WithLabelValues(webhook).Inc()
	m.repairs.Add(float64(len(p.announce)))
}

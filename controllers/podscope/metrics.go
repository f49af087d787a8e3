package podscope

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
)

// meters measure the entries, and count what they lack.
type meters struct {
	notes   map[string]prometheus.Gauge
	repairs prometheus.Counter
	bare    prometheus.Counter
	// size of the entries, and the namespaces of which all pods are sent.
	entries, bytes, clauses, compile, widened prometheus.Gauge
	// writes of the entries, and of provisional ones.
	writes, sweeps prometheus.Counter
}

// newMeters returns nil without a registerer. Notes, repairs and bare pods are measured for the webhook of new pods
// alone.
func newMeters(registerer prometheus.Registerer, webhook string) (*meters, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // the methods accept nil
	}
	m := &meters{}
	for into, o := range map[*prometheus.Gauge]prometheus.GaugeOpts{
		&m.entries: {
			Name: "kruisekit_pod_scope_entries",
			Help: "Entries of a webhook configuration of pods, which API servers evaluate for each request.",
		},
		&m.bytes: {Name: "kruisekit_pod_scope_bytes", Help: "Size of the entries of a webhook configuration of pods."},
		&m.clauses: {
			Name: "kruisekit_pod_scope_clauses",
			Help: "Alternatives of all match conditions of a webhook configuration of pods.",
		},
		&m.compile: {
			Name: "kruisekit_pod_scope_compile_seconds",
			Help: "About how long an API server compiles these match conditions after each write.",
		},
		&m.widened: {
			Name: "kruisekit_pod_scope_widened_namespaces",
			Help: "Namespaces of which all pods are sent because their selections change too often.",
		},
	} {
		gauges, err := metrics.Register(registerer, prometheus.NewGaugeVec(o, []string{"webhook"}))
		if err != nil {
			return nil, err
		}
		*into = gauges.WithLabelValues(webhook)
	}
	writes, err := metrics.Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_writes_total",
		Help: "Writes of the webhook configurations of pods. " +
			"API servers compile all conditions of a configuration again after each.",
	}, []string{"webhook"}))
	if err != nil {
		return nil, err
	}
	m.writes = writes.WithLabelValues(webhook)
	if webhook != webhookPods {
		return m, nil
	}
	m.sweeps = writes.WithLabelValues("provisional")
	return m, m.lacks(registerer)
}

// lacks registers what counts what the entries lack.
func (m *meters) lacks(registerer prometheus.Registerer) error {
	notes, err := metrics.Register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_pod_scope_notes",
		Help: "Notes about the entries of the pod webhook by their code: entries that are wider than the sets, " +
			"that other writers changed, or that a former installation left.",
	}, []string{"code"}))
	if err != nil {
		return err
	}
	m.repairs, err = metrics.Register(registerer, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_repairs_total",
		Help: "Writes of entries of the pod webhook that another writer had changed or removed.",
	}))
	if err != nil {
		return err
	}
	m.bare, err = metrics.Register(registerer, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_bare_pods_total",
		Help: "Pods that were created without their SidecarSets while entries of the pod webhook were missing.",
	}))
	if err != nil {
		return err
	}
	m.notes = map[string]prometheus.Gauge{}
	for _, code := range []string{
		scope.NoteUnreadable, scope.NoteWidened, entries.NotePolicy, entries.NoteCatchAll, entries.NoteNoAuthority,
	} {
		m.notes[code] = notes.WithLabelValues(code)
	}
	return nil
}

// observe measures what is wanted.
func (m *meters) observe(o *entries.Observation) {
	if m == nil {
		return
	}
	size := o.Want.Size()
	m.entries.Set(float64(size.Entries))
	m.bytes.Set(float64(size.Bytes))
	m.clauses.Set(float64(size.Clauses))
	m.compile.Set(size.Compile.Seconds())
	m.widened.Set(float64(len(o.Steady.Widened)))
}

// count sets how many notes there are of each code.
func (m *meters) count(notes []note.Note) {
	if m == nil {
		return
	}
	for code, gauge := range m.notes {
		n := 0
		for i := range notes {
			if notes[i].Code == code {
				n++
			}
		}
		gauge.Set(float64(n))
	}
}

// wrote counts a write.
func (m *meters) wrote(provisional bool) {
	switch {
	case m == nil:
	case provisional && m.sweeps != nil:
		m.sweeps.Inc()
	default:
		m.writes.Inc()
	}
}

// repaired counts a repair of the entries of new pods.
func (m *meters) repaired() {
	if m != nil && m.repairs != nil {
		m.repairs.Inc()
	}
}

func (m *meters) found(pods int) {
	if m != nil && m.bare != nil {
		m.bare.Add(float64(pods))
	}
}

package podscope

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/collectors"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/scope/entries"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// catchUp is the time for the cache to show what another writer has written.
	catchUp = 200 * time.Millisecond

	reasonUndone = "PodScopeUndone"
	reasonNote   = "PodScopeNote"
)

// report emits the notes when they change.
func (r *Reconciler) report(ctx context.Context, about *admissionregistrationv1.MutatingWebhookConfiguration, notes []note.Note) {
	r.metrics.count(notes)
	text := fmt.Sprint(notes)
	if text == r.reported {
		return
	}
	r.reported = text
	for _, n := range notes {
		log.FromContext(ctx).Info("Found entries that differ from what the sets select", "reason", n.Code, "object", n.Object, "note", n.Text)
		r.event(about, reasonNote, fmt.Sprintf("%s: %s", n.Object, n.Text))
	}
}

// announce emits what a write has done.
func (r *Reconciler) announce(ctx context.Context, about *admissionregistrationv1.MutatingWebhookConfiguration, notes []note.Note) {
	for _, n := range notes {
		log.FromContext(ctx).Info("Repaired entries", "reason", n.Code, "object", n.Object, "note", n.Text)
		r.metrics.repaired()
		r.event(about, reasonUndone, n.Text)
	}
}

// event emits an event about the configuration of pods; nil where it does not exist.
func (r *Reconciler) event(about *admissionregistrationv1.MutatingWebhookConfiguration, reason, text string) {
	if about == nil {
		about = &admissionregistrationv1.MutatingWebhookConfiguration{}
		about.Name = r.options.Configuration
	}
	var object runtime.Object = about
	if r.form.disruptions {
		object = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: about.ObjectMeta}
	}
	r.options.Recorder.Event(object, corev1.EventTypeWarning, reason, failure.BriefText(text))
}

// meters count what the entries lack.
type meters struct {
	notes   map[string]prometheus.Gauge
	repairs prometheus.Counter
	bare    prometheus.Counter
}

// newMeters returns nil without a registerer.
func newMeters(registerer prometheus.Registerer) (*meters, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // count and repaired accept nil
	}
	notes, err := collectors.Register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_pod_scope_notes",
		Help: "Notes about the entries of the pod webhook by their code: entries that are wider than the sets, that other writers changed, or that a former installation left.",
	}, []string{"code"}))
	if err != nil {
		return nil, err
	}
	repairs, err := collectors.Register(registerer, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_repairs_total",
		Help: "Writes of entries of the pod webhook that another writer had changed or removed.",
	}))
	if err != nil {
		return nil, err
	}
	bare, err := collectors.Register(registerer, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruisekit_pod_scope_bare_pods_total",
		Help: "Pods that were created without their SidecarSets while entries of the pod webhook were missing.",
	}))
	if err != nil {
		return nil, err
	}
	m := &meters{notes: map[string]prometheus.Gauge{}, repairs: repairs, bare: bare}
	for _, code := range []string{scope.NoteUnreadable, scope.NoteWidened, entries.NotePolicy, entries.NoteCatchAll, entries.NoteNoAuthority} {
		m.notes[code] = notes.WithLabelValues(code)
	}
	return m, nil
}

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

func (m *meters) repaired() {
	if m != nil {
		m.repairs.Inc()
	}
}

func (m *meters) found(pods int) {
	if m != nil {
		m.bare.Add(float64(pods))
	}
}

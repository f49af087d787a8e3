package sidecarset

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does with its default feature gates.
type Options struct {
	// Namespace of the ControllerRevisions, where injection looks for them; empty for kruise-system.
	Namespace string
	// Live reads past the cache, as after a write whose answer was lost. SetupWithManager takes the manager's API reader
	// where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
	// RefreshNotUpdate reconciles sets of type NotUpdate also when their pods change or are deleted. Without it, as in the
	// reference, their readyPods and updatedReadyPods stay as they were when the last pod was created.
	RefreshNotUpdate bool
	// Stalled is how long updates that wait for pods to become ready make no progress before an event reports it, once for
	// a spec. Default 1 minute.
	Stalled time.Duration
	// Explain is called at each pass, after its writes, with the reasons why pods wait. The context is that of the pass,
	// which Explain delays as long as it takes. Nil is not called.
	Explain func(ctx context.Context, set string, notes []note.Note)
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, kruise.DefaultNamespace)
	o.Stalled = cmp.Or(o.Stalled, time.Minute)
	return o
}

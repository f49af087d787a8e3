package nodepodprobe

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Live reads past the cache. SetupWithManager takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder record.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Explain takes the notes of each pass: which probes are left out, and which conditions are not written. Nil takes
	// none.
	Explain func(ctx context.Context, node string, notes []note.Note)
}

package advancedcronjob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Live reads past the cache. SetupWithManager takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Local is where a schedule without a time zone holds; nil for the zone of the process.
	Local *time.Location

	// Explain takes the notes of each pass, after its writes: which tick is due, which are skipped, and why. The pass
	// waits for Explain. Nil takes none.
	Explain func(ctx context.Context, job types.NamespacedName, notes []note.Note)
}

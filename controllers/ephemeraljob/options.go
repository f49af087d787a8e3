package ephemeraljob

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
	// Live reads past the cache. SetupWithManager takes the reader of the manager where it is nil.
	Live client.Reader
	// Recorder emits events. SetupWithManager takes the recorder of the manager where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Explain takes the notes of each pass, after its writes. The pass waits for it. Nil takes none.
	Explain func(ctx context.Context, job types.NamespacedName, notes []note.Note)
}

package uniteddeployment

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
	// Explain is called in each pass, after its writes, with what the allocation cannot meet. The pass waits for the
	// return. Nil for no call.
	Explain func(ctx context.Context, object types.NamespacedName, notes []note.Note)
}

package imagelistpulljob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Live reads past the cache, to find out whether a write without an answer took effect. SetupWithManager
	// takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder record.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// Explain takes the notes of each pass, after its writes: which jobs are replaced, which images are skipped, and
	// why. The context is that of the pass. The pass waits for Explain. Nil takes none.
	Explain func(ctx context.Context, list types.NamespacedName, notes []note.Note)
}

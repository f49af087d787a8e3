package nodeimage

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Live reads past the cache, to find out whether an object is gone or only not in the cache yet. SetupWithManager
	// takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder record.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// CreationDelay is how long a node has been ready before it gets its NodeImage. Zero is 30 seconds, less is none.
	CreationDelay time.Duration
	// ResponseTimeout is how long a node may be silent about a pull, from when it was asked for or should have ended.
	// Zero is 10 minutes.
	ResponseTimeout time.Duration
	// SecretNamespace is the one from which daemons read pull secrets. Empty is
	// [v1beta1.DefaultImagePullSecretNamespace].
	SecretNamespace string
	// Explain takes the notes of each pass, after its write: what a node waits for, and what left its NodeImage. The
	// context is that of the pass. The pass waits for Explain. Nil takes none.
	Explain func(ctx context.Context, node string, notes []note.Note)
}

package persistentpodstate

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/note"
)

// DefaultNamespace is that of the reference.
const DefaultNamespace = kruise.DefaultNamespace

// Options of a Reconciler. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace of the ConfigMap kruise-configuration. Default DefaultNamespace, kruise-system.
	Namespace string
	// StartOrdinal heeds spec.ordinals.start of Advanced StatefulSets, as the option of their reconciler does.
	StartOrdinal bool
	// Live reads past the cache. SetupWithManager takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder emits events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Explain takes the notes of each pass, after its writes. The pass waits for it. Nil takes none.
	Explain func(ctx context.Context, state types.NamespacedName, notes []note.Note)
}

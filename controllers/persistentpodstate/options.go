package persistentpodstate

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
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
}

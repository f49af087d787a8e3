package workloadspread

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
)

// Options of a Reconciler. The zero value behaves as the reference does by default.
type Options struct {
	// Live reads past the cache. Nil is the manager's API reader.
	Live client.Reader
	// Recorder emits events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Versioned are the kinds, in lower case, whose pods are counted by version; nil for deployment and replicaset.
	// Admission needs the same.
	Versioned []string
	// Namespace of the manager, whose ConfigMap kruise-configuration lists further kinds of targets. Default
	// kruise-system.
	Namespace string
}

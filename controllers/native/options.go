package native

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/inplace"
)

// Options of a Reconciler. The zero value acts on all sets whose annotation names no class.
type Options struct {
	// Live reads past the cache. SetupWithManager takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// Deployments has the reconciler roll out Deployments, too. It then needs rights of its own, and something that holds
	// them: see the package.
	Deployments bool
	// Class is the class of the sets that the reconciler acts on.
	Class string
	// Installed is what in-place updates find in the cluster besides Kubernetes. Without a daemon, a change of a label or
	// an annotation that feeds an environment variable recreates the pod.
	Installed inplace.Installation
	// Ask is called before updates of pods begin, with all of these pods in the order of their updates, as for budgets.
	// Nil for the error lets all begin, a *workload.RefusedError the first ones. Nil for no call.
	Ask func(ctx context.Context, pods []*corev1.Pod) error
	// Registerer gets the counter kruisekit_native_pods_total, by kind and by how a pod went to its revision: in_place or
	// evicted. Nil for none.
	Registerer prometheus.Registerer
}

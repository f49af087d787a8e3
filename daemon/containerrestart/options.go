package containerrestart

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Live reads past the cache: requests that the cache has lost while a container was stopped for them. SetupWithManager
	// takes the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events about containers. Where it is nil, SetupWithManager makes one whose events come from
	// kruise-daemon-crr on the node.
	Recorder record.EventRecorder
	// Registerer takes metrics: kruise_daemon_container_stops_total and kruise_daemon_prestop_hooks_total. Nil for none.
	Registerer prometheus.Registerer
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// NoPods says that the daemon does not watch pods. Then hooks are those of the request, which lacks some, and the
	// deletion of a pod does not cut short the stop of its containers.
	NoPods bool
}

// mostStops is how many containers are stopped at the same time, as with the workers of the reference.
const mostStops = 32

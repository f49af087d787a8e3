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

	// Stops is how many containers are stopped at the same time; 32 by default. More wait.
	Stops int
	// Together has the containers of a request that is not ordered stopped at once. Otherwise, as the reference does, the
	// next one is stopped when the one before has stopped.
	Together bool
	// NoPods says that the daemon does not watch pods. Then hooks are those of the request, which lacks some, and the
	// deletion of a pod does not cut short the stop of its containers.
	NoPods bool
	// NoEvents has the runtime asked every few seconds while something is under way, as the reference does, and not
	// listened to. It is for containerd 1.7 beside a kubelet with the feature gate EventedPLEG: there each event goes to
	// one listener alone, and must not be taken from the kubelet.
	NoEvents bool
}

// mostStops is how many containers are stopped at the same time by default, as with the workers of the reference.
const mostStops = 32

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	if o.Stops <= 0 {
		o.Stops = mostStops
	}
	return o
}

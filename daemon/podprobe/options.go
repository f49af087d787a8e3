package podprobe

import (
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Recorder takes events about pods. Where it is nil, SetupWithManager makes one whose events come from
	// kruise-daemon-podprobe on the node.
	Recorder record.EventRecorder
	// Live reads past the cache: a NodePodProbe that the cache shows as it was before a write. SetupWithManager takes
	// the manager's API reader where it is nil.
	Live client.Reader
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

const (
	// most is how many probes run at the same time, a quarter of them of one namespace.
	most = 64
	// maxTimeout bounds the timeout of a probe.
	maxTimeout = 5 * time.Minute
)

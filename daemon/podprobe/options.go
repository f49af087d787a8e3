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

	// Most is how many probes run at the same time; 64 by default.
	Most int
	// MostPerNamespace is how many of them are of one namespace; a quarter of Most by default.
	MostPerNamespace int
	// MaxTimeout bounds the timeout of a probe; 5 minutes by default.
	MaxTimeout time.Duration
}

const (
	defaultMost       = 64
	defaultMaxTimeout = 5 * time.Minute
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	if o.Most <= 0 {
		o.Most = defaultMost
	}
	if o.MostPerNamespace <= 0 {
		o.MostPerNamespace = max(o.Most/4, 1)
	}
	if o.MaxTimeout <= 0 {
		o.MaxTimeout = defaultMaxTimeout
	}
	return o
}

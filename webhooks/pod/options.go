package pod

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/scope"
)

const (
	// Path receives pods that must not be created without an answer.
	Path = scope.Path
	// OpenPath receives pods that may be. A failure is a warning there.
	OpenPath = Path + "-open"
	// ProvisionalPath receives pods of a set that is so new that the cache may lack it. The rest of the path names the
	// set. A failure is a warning there, until the set has an entry at Path.
	ProvisionalPath = Path + scope.ProvisionalSuffix + "/"
	// ProvisionalOpenPath is the same for a set that pods may lack also where the set is invalid.
	ProvisionalOpenPath = Path + scope.ProvisionalSuffix + "-open/"

	// DefaultNamespace is that of the reference.
	DefaultNamespace = kruise.DefaultNamespace

	// defaultTimeout is for requests that do not carry the timeout of the API server.
	defaultTimeout = 8 * time.Second
)

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Readiness are the options of the step that adds the gate KruisePodReady.
	Readiness ReadinessOptions
	// Sidecars are the options of the step that injects SidecarSets.
	Sidecars SidecarOptions
	// Budgets finds the PodUnavailableBudget of a new pod; nil leaves pods without the stamp of theirs.
	Budgets Budgets
	// Spreads gives pods the subsets of their WorkloadSpreads; nil leaves pods without. An Allocator of
	// webhooks/workloadspread does.
	Spreads Spreads
	// EnhancedLiveness moves the liveness probes of pods that ask for it into an annotation, and nothing runs them.
	EnhancedLiveness bool
	// Probes are the options of the step that writes the probes of PodProbeMarkers into new pods.
	Probes ProbeOptions
	// Timeout bounds an admission where the request does not carry the timeout of the API server. Default 8 seconds.
	Timeout time.Duration
	// Registerer registers the metrics; nil keeps none.
	Registerer prometheus.Registerer
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	return o
}

func (o Options) validate(steps []Step) error {
	var all []error
	if len(steps) == 0 {
		all = append(all, errors.New("at least one step is required"))
	}
	for _, s := range steps {
		if s.Name == "" || s.Apply == nil {
			all = append(all, errors.New("each step must have a name and a function"))
		}
	}
	if o.Timeout < 0 {
		all = append(all, fmt.Errorf("timeout must not be negative: %s", o.Timeout))
	}
	return errors.Join(all...)
}

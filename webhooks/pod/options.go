package pod

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/scope"
)

const (
	// Path is where API servers send pods that must not go without an answer.
	Path = scope.Path
	// OpenPath is where they send those that may. What cannot be done is a warning there.
	OpenPath = Path + "-open"
	// NewPath is where they send pods of a set that is so new that the cache may not have it. What follows names the set.
	NewPath = Path + scope.AheadSuffix + "/"
	// NewOpenPath is the same for pods that may go without an answer.
	NewOpenPath = Path + scope.AheadSuffix + "-open/"

	// DefaultNamespace is that of the reference.
	DefaultNamespace = pub.DefaultNamespace

	// defaultTimeout is for requests that do not say how long the API server waits.
	defaultTimeout = 8 * time.Second
	// reserve is what an answer needs for its way.
	reserve = 500 * time.Millisecond
)

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace is the manager's own, where revisions of sets are. Default kruise-system.
	Namespace string
	// ReadinessGateForAll gives all pods the gate KruisePodReady, and not only those of controllers of our own group.
	ReadinessGateForAll bool
	// SortContainers puts injected containers in the order of their names.
	SortContainers bool
	// Timeout bounds an admission where the API server does not say how long it waits. Default 8 seconds.
	Timeout time.Duration
	// Registerer takes the metrics; nil keeps none.
	Registerer prometheus.Registerer
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	return o
}

func (o Options) validate(l Lookups) error {
	var all []error
	if l.Sets == nil || l.Namespaces == nil || l.Revisions == nil {
		all = append(all, errors.New("sets, namespaces and revisions must be looked up somewhere"))
	}
	if o.Timeout < 0 {
		all = append(all, fmt.Errorf("a timeout of %s is over before it starts", o.Timeout))
	}
	return errors.Join(all...)
}

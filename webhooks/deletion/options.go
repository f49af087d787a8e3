package deletion

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/protection"
)

const (
	// defaultTimeout is less than the 10 seconds that API servers wait.
	defaultTimeout = 8 * time.Second
	// defaultPage is how many objects a list returns at a time.
	defaultPage = 100
)

// Options of a Guard. The zero value enforces the label, as the reference does with the gate
// ResourcesDeletionProtection.
type Options struct {
	// Policy is what is protected, and from which users.
	Policy protection.Policy
	// Timeout of all calls of one review. Default 8 seconds.
	Timeout time.Duration
	// Page is how many objects a list returns at a time. Counting ends with the first page that has an active object.
	// Default 100.
	Page int64
	// Registerer registers the metrics; nil keeps none.
	Registerer prometheus.Registerer
	// Audit receives a record of each refusal; nil keeps none.
	Audit func(Record)
	// ServedElsewhere are paths of other webhooks, which pass deletions to Handle.
	ServedElsewhere []string
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Page = cmp.Or(o.Page, defaultPage)
	if o.Audit == nil {
		o.Audit = func(Record) {}
	}
	return o
}

func (o Options) validate(reader client.Reader) error {
	var all []error
	if reader == nil {
		all = append(all, errors.New("a reader is required"))
	}
	if o.Timeout < 0 {
		all = append(all, fmt.Errorf("timeout must not be negative: %s", o.Timeout))
	}
	if o.Page < 0 {
		all = append(all, errors.New("page must not be negative"))
	}
	return errors.Join(all...)
}

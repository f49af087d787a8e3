package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// FromManager returns the steps in their order, which the package comment explains. They look up what they need in the
// caches of a manager, on every replica. It must be called before the manager starts.
//
// A new step is a file with its constructor, its options in Options, and a line here; its source is in internal/scope,
// which controllers/podscope reads too.
func FromManager(mgr ctrl.Manager, o Options) ([]Step, error) {
	o = o.withDefaults()
	sidecars, ofSidecars := sidecarsFromManager(mgr, o)
	place, ofPlace := placeFromManager(mgr)
	probes, ofProbes := probesFromManager(mgr, o)
	if err := errors.Join(ofSidecars, ofPlace, ofProbes); err != nil {
		return nil, fmt.Errorf("pod webhook: %w", err)
	}
	return []Step{
		Readiness(o.Readiness), Spread(o.Spreads), sidecars, Launch(), Budget(o.Budgets), place,
		Liveness(o.EnhancedLiveness), probes,
	}, nil
}

// Step is a part of the pipeline: a pure function, and the lookups that its constructor has bound to it.
type Step struct {
	// Name is in errors and metrics.
	Name string
	// Ready waits until the lookups can be read. It returns at once if they can, also with a context that has ended; nil
	// if there is nothing to wait for.
	Ready func(ctx context.Context) error
	// Apply returns the pod as the step leaves it. It changes nothing that the request refers to.
	Apply func(ctx context.Context, r Request) (Result, error)
}

// Request is a new pod, as the steps before have left it.
type Request struct {
	// UID is that of the admission request. The API server sends a pod once for each entry that selects it.
	UID types.UID
	// Path that the request came to, which may end in a scope.Mark.
	Path string
	// Namespace of the pod, which the pod itself may lack.
	Namespace string
	Pod       *corev1.Pod
	// Now is the time of the request.
	Now time.Time
	// DryRun forbids to record anything.
	DryRun bool
}

// Result is what a step makes of a pod.
type Result struct {
	// Pod is nil if it stays as it is.
	Pod *corev1.Pod
	// Warnings for the client that creates the pod.
	Warnings []string
	// Lacking counts what the pod goes without because the owner of it allows that.
	Lacking int
}

// InvalidError rejects a pod because of the pod itself or of an object that selects it. A retry cannot succeed.
type InvalidError struct {
	// Causes name the fields.
	Causes []metav1.StatusCause
	Err    error
}

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *InvalidError) Unwrap() error { return e.Err }

// LookupError is a lookup that failed. A retry may succeed.
type LookupError struct {
	// What was looked up, such as a namespace.
	What string
	Err  error
}

// Error names what was looked up.
func (e *LookupError) Error() string { return fmt.Sprintf("look up %s: %v", e.What, e.Err) }

// Unwrap returns the reason.
func (e *LookupError) Unwrap() error { return e.Err }

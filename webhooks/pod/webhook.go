package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/write"
)

// Webhook answers admission requests for new pods.
type Webhook struct {
	steps   []Step
	options Options
	metrics *meters
}

// New returns a webhook that takes pods through the steps in their order.
func New(steps []Step, o Options) (*Webhook, error) {
	o = o.withDefaults()
	if err := o.validate(steps); err != nil {
		return nil, fmt.Errorf("pod webhook: %w", err)
	}
	w := &Webhook{steps: steps, options: o}
	var err error
	if w.metrics, err = newMeters(o.Registerer, steps); err != nil {
		return nil, fmt.Errorf("pod webhook: %w", err)
	}
	return w, nil
}

// readyCheck is the name of the readiness check of the webhook.
const readyCheck = "pod-webhook"

// SetupWithManager serves the webhook on the manager's webhook server, and adds Ready to the manager's readiness
// checks.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	for path, open := range map[string]bool{
		Path: false, OpenPath: true, ProvisionalPath: true, ProvisionalOpenPath: true,
	} {
		server.Register(path, w.Handler(open))
	}
	if err := mgr.AddReadyzCheck(readyCheck, w.Ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// Ready returns an error until the lookups of every step can be read. It is a readiness check, by which a Service sends
// no pods to a replica that cannot answer yet.
func (w *Webhook) Ready(r *http.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	cancel() // the check does not wait
	for _, s := range w.steps {
		if s.Ready != nil && s.Ready(ctx) != nil {
			return fmt.Errorf("pod webhook: caches of step %s are not synced", s.Name)
		}
	}
	return nil
}

// Handler returns what is served at Path, or at the other paths, where a lookup that fails rejects no pod.
func (w *Webhook) Handler(open bool) http.Handler { return &handler{w, open} }

// caller is how the API server sent a request.
type caller struct {
	// path that the request came to.
	path string
	// within is how long the review may take.
	within time.Duration
	// open admits the pod where a lookup fails.
	open bool
}

func (w *Webhook) review(ctx context.Context, q *question, c caller) admission.Response {
	if !q.concerns() {
		return admission.Allowed("")
	}
	if q.Pod == nil {
		return review.BadRequest(errors.New("the request has no pod"))
	}
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	r := Request{
		UID:       q.UID,
		Path:      c.path,
		Namespace: cmp.Or(q.Pod.Namespace, q.Namespace),
		Pod:       q.Pod,
		Now:       w.options.Now(),
		DryRun:    ptr.Deref(q.DryRun, false),
	}
	o := w.run(ctx, r)
	if o.fault != nil {
		if !c.open || !o.fault.retriable() {
			return o.fault.response(q.Pod)
		}
		answer := admission.Allowed("")
		answer.Warnings = shortened(append(o.warnings, "created without what kruise would add: "+o.fault.Error()))
		return answer
	}
	answer := admission.Allowed("")
	if o.patch != nil {
		answer = review.Patched(o.patch)
	}
	answer.Warnings = shortened(o.warnings)
	return answer
}

// verdict is what becomes of a pod.
type verdict struct {
	// patch is nil for none.
	patch []write.Op
	// warnings are also those of the steps before a fault.
	warnings []string
	// fault is why a step refuses the pod.
	fault *StepError
}

// run takes a pod through the steps.
func (w *Webhook) run(ctx context.Context, r Request) (v verdict) {
	sent := r.Pod
	for i, s := range w.steps {
		began := w.options.Now()
		result, err := s.Apply(ctx, r)
		if err == nil {
			err = ctx.Err()
		}
		w.metrics.record(i, w.options.Now().Sub(began), outcomeOf(result, err))
		v.warnings = append(v.warnings, result.Warnings...)
		if err != nil {
			v.fault = &StepError{Step: s.Name, Err: err}
			return v
		}
		r.Pod = cmp.Or(result.Pod, r.Pod)
	}
	if r.Pod == sent {
		return v
	}
	patch, err := difference(sent, r.Pod)
	if err != nil {
		return verdict{fault: &StepError{Step: "patch", Err: err}}
	}
	v.patch = patch
	return v
}

// The bounds of API servers on warnings.
const (
	mostWarning  = 256
	mostWarnings = 16
)

// shortened returns warnings that an API server passes on whole.
func shortened(all []string) []string {
	for i, text := range all {
		if runes := []rune(text); len(runes) > mostWarning {
			all[i] = string(runes[:mostWarning-3]) + "..."
		}
	}
	return all[:min(len(all), mostWarnings)]
}

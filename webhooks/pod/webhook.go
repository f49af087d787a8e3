package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
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
	// timeout of the API server; zero if the request does not carry it.
	timeout time.Duration
	// open admits the pod where a lookup fails.
	open bool
}

func callerOf(r *http.Request, open bool) caller {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil {
		timeout = 0
	}
	return caller{path: r.URL.Path, timeout: timeout, open: open}
}

// budget leaves time to send the answer.
func (w *Webhook) budget(c caller) time.Duration {
	if c.timeout > 0 {
		return max(c.timeout-reserve, c.timeout/2)
	}
	return w.options.Timeout
}

func (w *Webhook) review(ctx context.Context, q *question, c caller) admission.Response {
	if !q.concerns() {
		return admission.Allowed("")
	}
	if q.Pod == nil {
		return review.BadRequest(errors.New("the request has no pod"))
	}
	ctx, cancel := context.WithTimeout(ctx, w.budget(c))
	defer cancel()
	r := Request{
		UID:       q.UID,
		Path:      c.path,
		Namespace: cmp.Or(q.Pod.Namespace, q.Namespace),
		Pod:       q.Pod,
		Now:       w.options.Now(),
		DryRun:    ptr.Deref(q.DryRun, false),
	}
	after, warnings, fault := w.run(ctx, r)
	if fault != nil {
		if !c.open || !fault.retriable() {
			return fault.response(q.Pod)
		}
		answer := admission.Allowed("")
		answer.Warnings = shortened(append(warnings, "created without what kruise would add: "+fault.Error()))
		return answer
	}
	answer := admission.Allowed("")
	if after != q.Pod {
		patch, err := difference(q.Pod, after)
		if err != nil {
			return (&StepError{Step: "patch", Err: err}).response(q.Pod)
		}
		answer = review.Patched(patch)
	}
	answer.Warnings = shortened(warnings)
	return answer
}

// run takes a pod through the steps. It returns the pod, and the warnings also of steps before an error.
func (w *Webhook) run(ctx context.Context, r Request) (*corev1.Pod, []string, *StepError) {
	var warnings []string
	began := r.Now
	for i, s := range w.steps {
		result, err := s.Apply(ctx, r)
		warnings = append(warnings, result.Warnings...)
		if err == nil {
			err = ctx.Err()
		}
		ended := w.options.Now()
		w.metrics.record(i, ended.Sub(began), outcomeOf(result, err))
		began = ended
		if err != nil {
			return nil, warnings, &StepError{Step: s.Name, Err: err}
		}
		if result.Pod != nil {
			r.Pod = result.Pod
		}
	}
	return r.Pod, warnings, nil
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

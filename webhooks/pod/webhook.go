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
	o := w.run(ctx, r, passage{sent: q.Pod})
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

// passage is a pod on its way through the steps.
type passage struct {
	// sent is the pod of the request.
	sent *corev1.Pod
	// step is the index of the next step.
	step int
}

// rest is what the steps after one have made of the pod, where that step has asked.
type rest struct {
	of      *corev1.Pod
	verdict *verdict
	took    time.Duration
}

// run takes a pod through a step and those after it. What a step has asked of the steps after it is not repeated.
func (w *Webhook) run(ctx context.Context, r Request, p passage) verdict {
	if p.step == len(w.steps) {
		return p.end(r.Pod)
	}
	s, began, after := w.steps[p.step], w.options.Now(), rest{}
	r.Rest = func(ctx context.Context, pod *corev1.Pod) error {
		began := w.options.Now()
		after.of = cmp.Or(pod, r.Pod)
		v := w.run(ctx, r.with(after.of), passage{p.sent, p.step + 1})
		after.verdict, after.took = &v, after.took+w.options.Now().Sub(began)
		if v.fault != nil {
			return v.fault
		}
		return nil
	}
	result, err := s.Apply(ctx, r)
	if err == nil && after.verdict == nil {
		err = ctx.Err()
	}
	took, next := w.options.Now().Sub(began)-after.took, cmp.Or(result.Pod, r.Pod)
	if v := after.verdict; v != nil && v.fault != nil && errors.Is(err, v.fault) {
		w.metrics.record(p.step, took, outcomeOf(Result{Pod: changedPod(r.Pod, after.of)}, nil))
		return *v
	}
	w.metrics.record(p.step, took, outcomeOf(result, err))
	if err != nil {
		return verdict{warnings: result.Warnings, fault: &StepError{Step: s.Name, Err: err}}
	}
	if after.verdict == nil || after.of != next {
		v := w.run(ctx, r.with(next), passage{p.sent, p.step + 1})
		after.verdict = &v
	}
	after.verdict.warnings = append(result.Warnings, after.verdict.warnings...)
	return *after.verdict
}

// with returns the request as the next step sees it.
func (r Request) with(pod *corev1.Pod) Request {
	r.Pod, r.Rest = pod, nil
	return r
}

// changedPod returns a pod; nil where it is the one from before.
func changedPod(before, pod *corev1.Pod) *corev1.Pod {
	if pod == before {
		return nil
	}
	return pod
}

// end returns the patch after the last step.
func (p passage) end(pod *corev1.Pod) verdict {
	if pod == p.sent {
		return verdict{}
	}
	patch, err := difference(p.sent, pod)
	if err != nil {
		return verdict{fault: &StepError{Step: "patch", Err: err}}
	}
	return verdict{patch: patch}
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

package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// Webhook answers admission requests for new pods.
type Webhook struct {
	lookups  Lookups
	options  Options
	metrics  *meters
	restored restorations
	absent   absences
}

// New makes the webhook.
func New(l Lookups, o Options) (*Webhook, error) {
	o = o.withDefaults()
	if err := o.validate(l); err != nil {
		return nil, fmt.Errorf("pod webhook: %w", err)
	}
	w := &Webhook{lookups: l, options: o}
	var err error
	if w.metrics, err = newMeters(o.Registerer, w.steps()); err != nil {
		return nil, fmt.Errorf("pod webhook: %w", err)
	}
	return w, nil
}

// readyCheck is the name of the readiness check of the webhook.
const readyCheck = "pod-webhook"

// SetupWithManager serves the webhook on the manager's webhook server, and adds Ready to the manager's readiness checks.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	for path, open := range map[string]bool{Path: false, OpenPath: true, NewPath: false, NewOpenPath: true} {
		server.Register(path, w.Handler(open))
	}
	if err := mgr.AddReadyzCheck(readyCheck, w.Ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// Ready returns an error until the lookups can be read. It is a readiness check, by which a Service sends no pods to a replica
// that cannot answer yet.
func (w *Webhook) Ready(r *http.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	cancel() // the check does not wait
	if err := w.lookups.ready(ctx); err != nil {
		return errors.New("pod webhook: caches are not synced")
	}
	return nil
}

// Handler gives what is served at Path and NewPath, or at OpenPath and NewOpenPath.
func (w *Webhook) Handler(open bool) http.Handler { return &handler{w, open} }

// patienceKey is for how long the API server waits, in the context of a request.
type patienceKey struct{}

// patience is what API servers say in the query.
func patience(ctx context.Context, r *http.Request) context.Context {
	if d, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && d > 0 {
		return context.WithValue(ctx, patienceKey{}, d)
	}
	return ctx
}

// aheadKey is for the set that an entry was written ahead of, in the context of a request.
type aheadKey struct{}

// ahead is what such an entry has in its path.
func ahead(ctx context.Context, r *http.Request) context.Context {
	if mark, ok := scope.ReadMark(r.URL.Path); ok {
		return context.WithValue(ctx, aheadKey{}, mark)
	}
	return ctx
}

// budget leaves time to say why there is no better answer.
func (w *Webhook) budget(ctx context.Context) time.Duration {
	if d, ok := ctx.Value(patienceKey{}).(time.Duration); ok {
		return max(d-reserve, d/2)
	}
	return w.options.Timeout
}

// step is a part of the pipeline. It gives the pod as it is to be, or nil if that is right as it is.
type step struct {
	name  string
	apply func(ctx context.Context, r *round) (*corev1.Pod, error)
}

// steps in the order that the package comment explains.
func (w *Webhook) steps() []step {
	return []step{
		{"readiness", w.readiness},
		{"sidecars", w.sidecars},
		{"launch", w.launch},
	}
}

// round is one pod on its way.
type round struct {
	// uid is of the question, and another for each.
	uid types.UID
	// namespace of the pod, which it may not have itself.
	namespace string
	// pod as the steps before have left it. It is not changed, but replaced.
	pod *corev1.Pod
	// warnings for whoever creates the pod.
	warnings []string
	// lost are the sets that the pod goes without, because they allow it.
	lost int
}

func (w *Webhook) review(ctx context.Context, q *question, open bool) admission.Response {
	if !q.concerns() {
		return admission.Allowed("")
	}
	pod := q.Pod
	if pod == nil {
		return review.BadRequest(errors.New("the request has no pod"))
	}
	ctx, cancel := context.WithTimeout(ctx, w.budget(ctx))
	defer cancel()
	r := &round{uid: q.UID, namespace: pod.Namespace, pod: pod}
	if r.namespace == "" {
		r.namespace = q.Namespace
	}
	if fault := w.run(ctx, r); fault != nil {
		if !open || !fault.passing() {
			return fault.response(pod)
		}
		answer := admission.Allowed("")
		answer.Warnings = shortened(append(r.warnings, "created without what kruise would add: "+fault.Error()))
		return answer
	}
	answer := admission.Allowed("")
	if r.pod != pod {
		patch, err := difference(pod, r.pod)
		if err != nil {
			return (&StepError{Step: "patch", Err: err}).response(pod)
		}
		answer = review.Patched(patch)
	}
	answer.Warnings = shortened(r.warnings)
	return answer
}

// run takes a pod through the steps.
func (w *Webhook) run(ctx context.Context, r *round) *StepError {
	for i, s := range w.steps() {
		began := w.options.Now()
		lost := r.lost
		next, err := s.apply(ctx, r)
		if err == nil {
			err = ctx.Err()
		}
		w.metrics.note(i, w.options.Now().Sub(began), outcomeOf(next, r.lost > lost, err))
		if err != nil {
			return &StepError{Step: s.name, Err: err}
		}
		if next != nil {
			r.pod = next
		}
	}
	return nil
}

// The bounds that API servers set to warnings.
const (
	mostWarning  = 256
	mostWarnings = 16
)

// shortened are warnings that an API server passes on whole.
func shortened(all []string) []string {
	for i, text := range all {
		if runes := []rune(text); len(runes) > mostWarning {
			all[i] = string(runes[:mostWarning-3]) + "..."
		}
	}
	return all[:min(len(all), mostWarnings)]
}

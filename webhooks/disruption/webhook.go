package disruption

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/pub"
)

const (
	// Path receives the requests, as in the reference.
	Path = scope.DisruptionPath
	// OpenPath receives deletions and evictions that only WorkloadSpreads concern, and the requests of exempt users. It
	// admits them all.
	OpenPath = Path + "-open"

	// defaultTimeout is for requests that do not carry the timeout of the API server.
	defaultTimeout = 8 * time.Second

	// readyCheck is the name of the readiness check of the webhook.
	readyCheck = "disruption-webhook"
)

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// NoDeletes admits every deletion and every eviction.
	NoDeletes bool
	// Updates reviews updates in place and resizes, too.
	Updates bool
	// Spreads records admitted deletions in WorkloadSpreads; nil records none. An Allocator of webhooks/workloadspread
	// does.
	Spreads Spreads
	// Timeout bounds a review where the request does not carry the timeout of the API server. Default 8 seconds.
	Timeout time.Duration
}

// Webhook answers admission requests about pods that exist.
type Webhook struct {
	guard   *Guard
	pods    client.Reader
	options Options
}

// New returns a webhook. Pods are read live, for evictions. Without a guard no request is refused.
func New(guard *Guard, pods client.Reader, o Options) (*Webhook, error) {
	if guard == nil && o.Spreads == nil || pods == nil {
		return nil, errors.New("disruption webhook: a guard or Spreads, and a reader of pods are required")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("disruption webhook: timeout must not be negative: %s", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Webhook{guard: guard, pods: pods, options: o}, nil
}

// SetupWithManager serves the webhook on the manager's webhook server, and adds Ready to the manager's readiness
// checks.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	server.Register(Path, w.Handler())
	server.Register(OpenPath, w.OpenHandler())
	if err := mgr.AddReadyzCheck(readyCheck, w.Ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// Ready returns an error until all budgets can be read.
func (w *Webhook) Ready(r *http.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	cancel() // the check does not wait
	if w.guard != nil && w.guard.Ready(ctx) != nil {
		return errors.New("disruption webhook: the cache of budgets is not synced")
	}
	if w.options.Spreads != nil && w.options.Spreads.Ready(ctx) != nil {
		return errors.New("disruption webhook: the cache of WorkloadSpreads is not synced")
	}
	return nil
}

// Handler returns what is served at Path. A review ends before the API server stops to wait for it.
func (w *Webhook) Handler() http.Handler { return w.bounded(w.Review) }

// OpenHandler returns what is served at OpenPath.
func (w *Webhook) OpenHandler() http.Handler { return w.bounded(w.ReviewOpen) }

func (w *Webhook) bounded(answer admission.HandlerFunc) http.Handler {
	inner := &admission.Webhook{Handler: answer}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), review.Within(r, w.options.Timeout))
		defer cancel()
		inner.ServeHTTP(to, r.WithContext(ctx))
	})
}

// Review answers a request as at Path.
func (w *Webhook) Review(ctx context.Context, req admission.Request) admission.Response {
	if w.guard == nil {
		return admission.Allowed("")
	}
	d, err := w.disruption(ctx, req, w.options.NoDeletes)
	switch {
	case err != nil:
		return undecided(d.Operation, err)
	case d.Operation == pub.Harmless:
		return admission.Allowed("")
	}
	decision, err := w.guard.Review(ctx, d)
	switch {
	case err != nil:
		return undecided(d.Operation, err)
	case !decision.Allowed:
		return refused(d.Operation, decision)
	}
	w.depart(ctx, d)
	return admission.Allowed("")
}

// requestError is about the request itself.
type requestError struct{ error }

// disruption returns what a request does to its pod. A request that disrupts none is Harmless.
func (w *Webhook) disruption(ctx context.Context, req admission.Request, noDeletes bool) (Disruption, error) {
	d := Disruption{User: req.UserInfo.Username, DryRun: req.DryRun != nil && *req.DryRun}
	if req.Resource.Group != corev1.GroupName || req.Resource.Resource != "pods" {
		return d, nil
	}
	var err error
	switch req.Operation {
	case admissionv1.Update:
		if w.options.Updates && w.guard != nil {
			err = w.update(req, &d)
		}
	case admissionv1.Delete:
		if !noDeletes && req.SubResource == "" && len(req.OldObject.Raw) > 0 {
			d.Operation = pub.Delete
			d.Pod, err = decode(req, req.OldObject.Raw)
		}
	case admissionv1.Create:
		if !noDeletes && req.SubResource == "eviction" {
			d.Operation = pub.Evict
			err = w.evict(ctx, req, &d)
		}
	case admissionv1.Connect:
	}
	return d, err
}

// update judges an update by the pod before it, whose budget a new label or annotation cannot leave.
func (w *Webhook) update(req admission.Request, d *Disruption) error {
	before, err := decode(req, req.OldObject.Raw)
	if err != nil {
		return err
	}
	after, err := decode(req, req.Object.Raw)
	if err != nil {
		return err
	}
	d.Pod, d.Operation = before, pub.Effect(before, after, req.SubResource, w.guard.Policy())
	return nil
}

func (w *Webhook) evict(ctx context.Context, req admission.Request, d *Disruption) error {
	eviction := &policyv1.Eviction{}
	if len(req.Object.Raw) > 0 {
		if err := review.Unmarshal(req.Object.Raw, eviction); err != nil {
			return requestError{fmt.Errorf("decode eviction: %w", err)}
		}
	}
	d.DryRun = d.DryRun || eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0
	d.Pod = &corev1.Pod{}
	err := w.pods.Get(ctx, types.NamespacedName{Namespace: req.Namespace, Name: req.Name}, d.Pod)
	if apierrors.IsNotFound(err) {
		return requestError{err}
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", req.Name, err)
	}
	return nil
}

func decode(req admission.Request, raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := review.Unmarshal(raw, pod); err != nil {
		return nil, requestError{fmt.Errorf("decode pod: %w", err)}
	}
	if pod.Namespace == "" {
		pod.Namespace = req.Namespace
	}
	return pod, nil
}

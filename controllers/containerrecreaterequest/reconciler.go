package containerrecreaterequest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler supervises ContainerRecreateRequests.
type Reconciler struct {
	api *binding.Binding
	// requests is their kind, as untyped objects, and the own writes of them.
	requests stored.Kind
	decoded  stored.Memo[request, *request]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("containerrecreaterequest", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	writes := stored.NewWrites(api.Live, api.Now)
	return &Reconciler{api: api, requests: stored.Kind{GVK: gvk(), Writes: writes}}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), byPod, indexed); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	return r.api.Bind(mgr, "containerrecreaterequest-controller", o).
		For(stored.Untyped(gvk())).
		Watches(stored.Untyped(gvk()), handler.EnqueueRequestsFromMapFunc(r.besides), builder.WithPredicates(ends())).
		Watches(&corev1.Pod{}, r.aboutPod()).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const (
	kind = "ContainerRecreateRequest"

	// soon is when to reconcile again after a write that failed because the object has changed. Usually an event comes
	// first.
	soon = time.Second
)

// Reconcile does what there is to do about one request now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, name.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s)
	err = r.run(ctx, p)
	switch {
	case write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	r.report(ctx, p)
	return ctrl.Result{RequeueAfter: p.RequeueAfter}, nil
}

// run sends the writes of a plan one after the other, until one fails.
func (r *Reconciler) run(ctx context.Context, p *plan) error {
	for _, next := range p.writes() {
		w := next()
		if w == nil {
			continue
		}
		answer, err := r.api.Send(ctx, p.key(), w, r.requests.Writes)
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		if raw, ok := answer.(*unstructured.Unstructured); ok && w.Verb == write.Patch {
			if p.request, _, err = decode(raw); err != nil {
				return err
			}
		}
	}
	return nil
}

package containerrecreaterequest

import (
	"context"
	"errors"
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
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler supervises ContainerRecreateRequests.
type Reconciler struct {
	client client.Client
	// requests is where requests are read from, as untyped objects, and found by their pod.
	requests client.Reader
	options  Options
	writes   *ledger.Ledger[*unstructured.Unstructured]
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("containerrecreaterequest: a client is needed")
	}
	r := &Reconciler{client: c, requests: c, options: o.withDefaults()}
	r.writes = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
	return r, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.requests = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.writes = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), byPod, indexed); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(stored.Untyped(gvk())).
		Watches(stored.Untyped(gvk()), handler.EnqueueRequestsFromMapFunc(r.besides), builder.WithPredicates(ends())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.about), builder.WithPredicates(podEvents())).
		WithOptions(retries.WithDefaults(o)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const (
	controllerName = "containerrecreaterequest-controller"
	kind           = "ContainerRecreateRequest"

	// soon is when to look again at what has changed in the moment of a write. Usually an event tells before.
	soon = time.Second
)

// Reconcile does what there is to do about one request now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, name.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, snapshot: s}
	if s.malformed == nil || over(s.request) {
		a.plan = containerrestart.Supervise(s.input())
		err = a.carryOut(ctx)
	} else {
		err = a.refuse(ctx)
	}
	switch {
	case write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	a.report(ctx)
	return ctrl.Result{RequeueAfter: a.plan.RequeueAfter}, nil
}

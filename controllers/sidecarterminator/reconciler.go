package sidecarterminator

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar/finish"
)

// Reconciler finishes pods.
type Reconciler struct {
	client client.Client
	// requests is where requests are read from, as untyped objects.
	requests client.Reader
	options  Options
	memory   memory
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("sidecarterminator: a client is needed")
	}
	return &Reconciler{client: c, requests: c, options: o.withDefaults()}, nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.requests = mgr.GetCache()
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&corev1.Pod{}, builder.WithPredicates(podEvents())).
		Watches(stored.Untyped(gvk()), owned.By("", "Pod"), builder.WithPredicates(r.requestEvents())).
		WithOptions(retries.WithDefaults(o)).
		Complete(r)
}

func gvk() schema.GroupVersionKind {
	return v1beta1.GroupVersion.WithKind("ContainerRecreateRequest")
}

const (
	controllerName = "sidecarterminator-controller"

	// soon is when to look again at what has changed in the moment of a write.
	soon = time.Second
	// patience is how long the cache may take to show a request that was made.
	patience = time.Minute
)

// Reconcile does what there is to do about one pod now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx, name.NamespacedName)
	if err != nil || in == nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, pod: in.Pod, plan: finish.Decide(*in)}
	a.explain(ctx)
	err = a.carryOut(ctx)
	switch {
	case outdated(err):
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: a.plan.RequeueAfter}, nil
}

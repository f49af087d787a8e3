package imagelistpulljob

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler makes the pull jobs of lists.
type Reconciler struct {
	client client.Client
	// cached is where lists and jobs are read from, as untyped objects.
	cached  client.Reader
	options Options

	listWrites *ledger.Ledger[*unstructured.Unstructured]
	jobWrites  *ledger.Ledger[*unstructured.Unstructured]
	told       told
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("imagelistpulljob: a client is needed")
	}
	r := &Reconciler{client: c, cached: c, options: o.withDefaults()}
	r.keepLedgers()
	return r, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

func (r *Reconciler) keepLedgers() {
	r.listWrites = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
	r.jobWrites = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
}

// forget drops what is known of a list that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.listWrites.Forget(name)
	r.jobWrites.Forget(name)
	r.told.forget(name)
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.cached = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedgers()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), stored.Untyped(jobKind())); err != nil {
		return fmt.Errorf("index ImagePullJobs: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(stored.Untyped(gvk())).
		Watches(stored.Untyped(jobKind()), owned.By(v1beta1.GroupVersion.Group, gvk().Kind)).
		WithOptions(retries.WithDefaults(o)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImageListPullJob") }

func jobKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImagePullJob") }

const controllerName = "imagelistpulljob-controller"

// Reconcile brings one list a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, snapshot: s}
	if s.invalid != nil {
		a.complain(s.invalid.Error())
		return ctrl.Result{}, nil //nolint:nilerr // nothing helps but another spec
	}
	a.plan = imagepull.List(s.list, s.jobs, s.now)
	if a.plan.Delete {
		return ctrl.Result{}, a.leave(ctx)
	}
	if err := a.label(ctx); err != nil || s.list.Status.CompletionTime != nil {
		return ctrl.Result{RequeueAfter: a.plan.RequeueAfter}, err
	}
	a.complain(a.misfits())
	err = errors.Join(a.make(ctx), a.drop(ctx), a.report(ctx))
	if r.options.Explain != nil {
		r.options.Explain(ctx, a.key(), a.plan.Notes)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.recheckAfter}, nil
}

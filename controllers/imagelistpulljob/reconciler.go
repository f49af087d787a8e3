package imagelistpulljob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler makes the pull jobs of lists.
type Reconciler struct {
	api     *binding.Binding
	options Options

	// listObjects and jobObjects are read untyped, as the own writes left them.
	listObjects, jobObjects stored.Kind
	// emitted are the events of lists that cannot work.
	emitted memory.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("imagelistpulljob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o,
		listObjects: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		jobObjects:  stored.Kind{GVK: jobKind(), Writes: stored.NewWrites(api.Live, api.Now)},
	}, nil
}

// forget drops what is known of a list that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.listObjects.Writes.Forget(name)
	r.jobObjects.Writes.Forget(name)
	r.emitted.Forget(name)
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), stored.Untyped(jobKind())); err != nil {
		return fmt.Errorf("index ImagePullJobs: %w", err)
	}
	return r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk())).
		Watches(stored.Untyped(jobKind()), owned.By(v1beta1.GroupVersion.Group, gvk().Kind)).
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
	if s.invalid != nil {
		r.emitInvalid(s, s.invalid.Error())
		return ctrl.Result{}, nil //nolint:nilerr // only another spec helps
	}
	p := newPlan(s, r.listObjects, r.jobObjects)
	err = driver.Run(ctx, p.pass(), driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now, Owner: s.key(), Isolation: driver.Objects,
		Ledgers: []driver.Recorder{r.listObjects, r.jobObjects},
	})
	for _, job := range p.found {
		r.jobObjects.Writes.Created(s.key(), job)
	}
	r.emit(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.after()}, nil
}

package nodeimage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Reconciler keeps the NodeImages of nodes.
type Reconciler struct {
	api     *binding.Binding
	options Options
	// jobless means that there are no pull jobs in this cluster.
	jobless bool

	// images is their kind, as untyped objects, and the own writes of them.
	images stored.Kind
	facts  knowledge
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("nodeimage", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	writes := stored.NewWrites(api.Live, api.Now)
	return &Reconciler{api: api, options: o.withDefaults(), images: stored.Kind{GVK: gvk(), Writes: writes}}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), ownerField, owners)
	if err := binding.SharedIndex(err); err != nil {
		return fmt.Errorf("index the owners of tags: %w", err)
	}
	b := r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(imageEvents())).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeEvents()))
	installed, err := binding.Installed(mgr.GetRESTMapper(), jobKind())
	if err != nil {
		return err
	}
	if r.jobless = !installed; r.jobless {
		const text = "Owners of tags are not looked up: ImagePullJobs are not installed"
		mgr.GetLogger().Info(text, "controller", controllerName)
	} else {
		b = b.WatchesMetadata(&v1beta1.ImagePullJob{}, r.jobEvents())
	}
	return b.Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("NodeImage") }

func jobKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImagePullJob") }

const controllerName = "nodeimage-controller"

// Reconcile brings one NodeImage in line with its node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s, r.options, r.images)
	err = r.api.Run(ctx, s.key(), p, r.images)
	r.remember(p)
	r.emit(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.RequeueAfter()}, nil
}

package nodeimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler keeps the NodeImages of nodes.
type Reconciler struct {
	api     *binding.Binding
	options Options
	// jobless means that there are no pull jobs in this cluster.
	jobless bool

	// images is their kind, as untyped objects, and the own writes of them.
	images stored.Kind
	// facts are what was found out about single objects, each for a while: whether they are gone. They may be lost at any
	// time.
	facts *cache.LRUExpireCache
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("nodeimage", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	o.SecretNamespace = cmp.Or(o.SecretNamespace, v1beta1.DefaultImagePullSecretNamespace)
	writes := stored.NewWrites(api.Live, api.Now)
	return &Reconciler{
		api: api, options: o, images: stored.Kind{GVK: gvk(), Writes: writes},
		facts: cache.NewLRUExpireCacheWithClock(maxFacts, clock(api.Now)),
	}, nil
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
	p := newPlan(s, r.options)
	after, err := r.carryOut(ctx, p)
	if err := errors.Join(s.failed, err); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: passes.Sooner(after, s.recheckAfter)}, nil
}

// carryOut makes the write of a plan, if any, emits what there is to tell, and returns when to look again.
func (r *Reconciler) carryOut(ctx context.Context, p *plan) (time.Duration, error) {
	w, err := p.write(r.images)
	if w == nil || err != nil {
		r.emit(ctx, p, false)
		return p.decision.RequeueAfter, err
	}
	_, err = r.api.Send(ctx, p.key(), w, r.images)
	r.emit(ctx, p, err == nil && w.Subresource == write.Status)
	switch {
	case w.Verb == write.Patch && apierrors.IsConflict(err):
		return catchUp, nil
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err), // its event is on the way
		w.Verb != write.Create && apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write NodeImage: %w", err)
	}
	return 0, nil
}

package statefulset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/dependents"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/podwatch"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Reconciler brings Advanced StatefulSets to what they ask for.
type Reconciler struct {
	api        *binding.Binding
	options    Options
	dependents *dependents.Dependents
	memory     memory.Of[types.NamespacedName, knowledge]
	emitted    once.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("statefulset", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{api: api, options: o, dependents: dependents.New(api, dependents.Options{})}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound := r.api.Bind(mgr, controllerName, o)
	if err := r.dependents.Setup(ctx, mgr, controllerName); err != nil {
		return err
	}
	if err := owned.IndexOrphans(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}, setOfPod); err != nil {
		return fmt.Errorf("index orphans: %w", err)
	}
	changes := podwatch.Changes(podwatch.Options{SkipQuiet: r.options.SkipQuiet, Policy: r.options.policy(), Now: r.api.Now})
	return bound.
		For(stored.Untyped(gvk()), builder.WithPredicates(conditions.IgnoreRewording(creation().conditionType, update().conditionType))).
		Watches(&corev1.Pod{}, owned.By(v1beta1.GroupVersion.Group, kind), builder.WithPredicates(changes)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.setsOfOrphan), builder.WithPredicates(changes)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.setsOfClaim)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const (
	controllerName = "statefulset-controller"
	kind           = "StatefulSet"
)

// Reconcile brings one StatefulSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.invalid != nil {
		return ctrl.Result{}, r.reject(ctx, s)
	}
	p, err := r.options.plan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.revise(ctx, s, p); err != nil {
		return ctrl.Result{}, err
	}
	r.execute(ctx, s, p)
	if err := r.report(ctx, s, p); err != nil {
		return r.api.Result(request, p.after.After(), err)
	}
	err = errors.Join(p.scaleErr, p.updateErr, r.trim(ctx, s, p))
	if err != nil && p.invalid != nil {
		err = reconcile.TerminalError(err) // only another spec can mend it
	}
	return r.api.Result(request, p.after.After(), err)
}

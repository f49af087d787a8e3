package cloneset

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
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

// Reconciler brings CloneSets to what they ask for.
type Reconciler struct {
	api        *binding.Binding
	options    Options
	dependents *dependents.Dependents
	memory     memory.Of[types.NamespacedName, knowledge]
	emitted    once.Texts[types.NamespacedName]
	// limited are the texts about creation that waits for pods to become available.
	limited once.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("cloneset", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	owns := dependents.Options{Claims: true, PullJobs: o.PreDownload}
	return &Reconciler{api: api, options: o.withDefaults(), dependents: dependents.New(api, owns)}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound := r.api.Bind(mgr, controllerName, o)
	if err := r.dependents.Setup(ctx, mgr, controllerName); err != nil {
		return err
	}
	changes := podwatch.Changes(podwatch.Options{SkipQuiet: r.options.SkipQuiet, Policy: r.options.policy(), Now: r.api.Now})
	return bound.
		For(stored.Untyped(gvk()), builder.WithPredicates(conditions.IgnoreRewording(failedScale, failedUpdate))).
		Watches(&corev1.Pod{}, owned.By(v1beta1.GroupVersion.Group, kind), builder.WithPredicates(changes)).
		Watches(&corev1.PersistentVolumeClaim{}, owned.By(v1beta1.GroupVersion.Group, kind)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const (
	controllerName = "cloneset-controller"
	kind           = "CloneSet"
)

// Reconcile brings one CloneSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.invalid != nil {
		return ctrl.Result{}, r.reject(ctx, s)
	}
	p, err := r.options.plan(s)
	if err == nil && p.runs(s) && p.needsAllPods() && !s.verified() {
		if err = r.verifyPods(ctx, s); err != nil {
			return ctrl.Result{}, errors.Join(err, r.giveUp(ctx, s, s.set.Status.DeepCopy(), err))
		}
		p, err = r.options.plan(s)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.revise(ctx, s, p); err != nil {
		return ctrl.Result{}, err
	}
	preDownload := r.preDownload(ctx, s, p)
	r.execute(ctx, s, p)
	if err := r.report(ctx, s, p); err != nil {
		return r.api.Result(request, p.after.After(), err)
	}
	err = errors.Join(p.scaleErr, p.updateErr, preDownload, r.trim(ctx, s, p))
	if err != nil && p.invalid != nil {
		err = reconcile.TerminalError(err) // only another spec can mend it
	}
	return r.api.Result(request, p.after.After(), err)
}

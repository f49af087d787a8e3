package sidecarset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings the pods of SidecarSets to what the sets ask for.
type Reconciler struct {
	client client.Client
	// sets is where SidecarSets are read from, as untyped objects.
	sets    client.Reader
	options Options

	setWrites      *ledger.Ledger[*unstructured.Unstructured]
	revisionWrites *ledger.Ledger[*appsv1.ControllerRevision]
	memory         memory
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("sidecarset: a client is needed")
	}
	r := &Reconciler{client: c, sets: c, options: o.withDefaults()}
	r.keepLedgers()
	return r, nil
}

func (r *Reconciler) keepLedgers() {
	r.setWrites = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
	r.revisionWrites = ledger.New[*appsv1.ControllerRevision](r.live(), r.options.Now)
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.sets = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedgers()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	if err := indexPods(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	namespaces, relabelled := r.namespaceEvents()
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(stored.Untyped(gvk()), builder.WithPredicates(setEvents())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(namespaceOf(""), namespaces, builder.OnlyMetadata, builder.WithPredicates(relabelled)).
		WithOptions(retries.WithDefaults(o)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("SidecarSet") }

const controllerName = "sidecarset-controller"

// Reconcile brings the pods of one SidecarSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	begun := r.options.Now()
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, snapshot: s, writes: r.memory.writes(s.set.Name, r), looked: r.options.Now().Sub(begun)}
	if s.malformed != nil {
		return ctrl.Result{}, a.refuse(ctx)
	}
	if err := a.revise(ctx); err != nil {
		if apierrors.IsInvalid(err) { // such as a custom version that is no label
			a.malformed = err
			return ctrl.Result{}, a.refuse(ctx)
		}
		return ctrl.Result{}, err
	}
	led := a.lead(ctx)
	a.tellFailed(led)
	a.tellStalled()
	if err := a.report(ctx); err != nil {
		return ctrl.Result{}, errors.Join(led, err)
	}
	if unfit(led) != nil { // the pods and their revisions may not be known
		a.tellUnfit(unfit(led))
		return ctrl.Result{}, outcome(led)
	}
	if err := errors.Join(led, a.trim(ctx)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: a.after}, nil
}

// refuse is all that is done with a set that cannot be read, or of which no revision can be made.
func (a *act) refuse(ctx context.Context) error {
	status := a.set.Status
	status.ObservedGeneration = a.set.Generation
	if err := a.writeStatus(ctx, &status); err != nil {
		return err
	}
	a.tellUnfit(a.malformed)
	return reconcile.TerminalError(a.malformed)
}

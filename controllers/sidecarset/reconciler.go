package sidecarset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/podwrites"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings the pods of SidecarSets to what the sets ask for.
type Reconciler struct {
	api     *binding.Binding
	options Options

	sets      stored.Kind
	status    statuspatch.Writer
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	memory    memory
	meters    meters
	// failures are those that were emitted as events.
	failures once.Texts[string]
	// answers are whether sets that the cache lacks do not exist.
	answers *cache.LRUExpireCache
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("sidecarset", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	meters, err := newMeters(o.Registerer)
	if err != nil {
		return nil, err
	}
	sets := stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)}
	return &Reconciler{
		api: api, options: o.withDefaults(), meters: meters, sets: sets, status: statuspatch.Writer{Client: c, Kind: sets},
		revisions: ledger.New[*appsv1.ControllerRevision](api.Live, api.Now),
		memory:    memory{newWrites: func() *podwrites.Writes { return podwrites.New(api.Live, api.Now) }},
		answers:   cache.NewLRUExpireCacheWithClock(answersKept, clock(api.Now)),
	}, nil
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
	if err := binding.SharedIndex(mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, podField, setsOf)); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	namespaces, relabelled := r.namespaceEvents()
	return r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(setEvents())).
		Watches(&corev1.Pod{}, r.podEvents()).
		WatchesMetadata(&corev1.Namespace{}, namespaces, builder.WithPredicates(relabelled)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("SidecarSet") }

const controllerName = "sidecarset-controller"

// Reconcile brings the pods of one SidecarSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	begun := r.api.Now()
	s, err := r.observe(ctx, request.Name)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case s == nil:
		r.forget(request.Name)
		return r.release(ctx, request.Name)
	case s.set.DeletionTimestamp != nil:
		return ctrl.Result{}, nil
	}
	p := &pass{Reconciler: r, snapshot: s, state: r.memory.of(s.set.Name)}
	if s.malformed != nil {
		return ctrl.Result{}, p.refuse(ctx, s.malformed)
	}
	if err := p.revise(ctx); apierrors.IsInvalid(err) { // such as a custom version that is no label
		return ctrl.Result{}, p.refuse(ctx, err)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	failed := p.update(ctx, begun)
	p.emitBlocked()
	p.emitFailures()
	p.emitStall()
	p.emitLacking()
	if err := p.report(ctx); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if spec := (*rollout.SpecError)(nil); errors.As(failed, &spec) { // the pods and their revisions may not be known
		p.emitInvalid(spec)
		return ctrl.Result{}, failure.Terminal(failed, needsOtherSpec)
	}
	p.emitInvalid(nil)
	return r.api.Result(request, p.requeue.After(), errors.Join(failed, p.trim(ctx)))
}

// needsOtherSpec reports whether only another spec can mend an error.
func needsOtherSpec(err error) bool {
	_, is := err.(*rollout.SpecError) //nolint:errorlint // one that is wrapped is of a write
	return is
}

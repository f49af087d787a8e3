package ephemeraljob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/ledger"
)

type ephemeralJob = v1alpha1.EphemeralJob

// Reconciler runs EphemeralJobs.
type Reconciler struct {
	api     *binding.Binding
	options Options

	jobs       stored.Kind
	unfinished *watches.Unfinished[ephemeralJob, *ephemeral.Rule]
	// pods are the own writes, by job.
	pods *ledger.Ledger[*corev1.Pod]
	// refused are the pods that refuse containers, by job.
	refused memory.Of[types.NamespacedName, map[types.UID]ephemeral.Refusal]
	// emitted are the events about invalid specs.
	emitted memory.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("ephemeraljob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, jobs: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		pods:       lean.NewWrites(api.Live, api.Now),
		unfinished: watches.NewUnfinished(gvk(), ephemeral.Over, ephemeral.NewRule),
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/ephemeralcontainers,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := r.unfinished.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index EphemeralJobs: %w", err)
	}
	return r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutCounters())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Complete(r)
}

const controllerName = "ephemeraljob-controller"

func gvk() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("EphemeralJob") }

// Reconcile brings one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s, r.jobs)
	err = r.api.Run(ctx, s.key(), p.all, r.pods, r.jobs.Writes)
	r.refused.Note(s.key(), func(known *map[types.UID]ephemeral.Refusal) { *known = p.outcome.Refused })
	r.emit(ctx, p)
	return r.api.Result(request, p.after(), err)
}

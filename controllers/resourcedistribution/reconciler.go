package resourcedistribution

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

type resourceDistribution = v1beta1.ResourceDistribution

// Reconciler keeps the copies of ResourceDistributions.
type Reconciler struct {
	api     *binding.Binding
	options Options

	distributions stored.Kind
	status        statuspatch.Writer
	// copies are the own writes of copies, by namespace, kind and name.
	copies  *ledger.Ledger[*metav1.PartialObjectMetadata]
	watches *watches
	// targets are those of distributions that were observed, by name, for events of namespaces.
	targets selections
	// known is what the last pass of a distribution found out, by name.
	known memory.Of[string, map[string]distribution.Known]
	// emitted are the events about invalid specs.
	emitted once.Texts[string]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("resourcedistribution", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	kind := stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)}
	return &Reconciler{
		api: api, options: o, distributions: kind, status: statuspatch.Writer{Client: c, Kind: kind},
		copies: ledger.New[*metav1.PartialObjectMetadata](api.Live, api.Now), watches: newWatches(api),
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := r.watches.setup(mgr); err != nil {
		return fmt.Errorf("watch copies: %w", err)
	}
	return r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, r.namespaceEvents()).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(distribution.Kind) }

const controllerName = "resourcedistribution-controller"

// Reconcile brings the copies of one distribution up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	pass := distribution.Plan(s.input)
	r.execute(ctx, s, pass)
	r.known.Note(request.Name, func(known *map[string]distribution.Known) { *known = pass.Known() })
	reported := r.report(ctx, s, pass)
	if r.options.Explain != nil {
		r.options.Explain(ctx, request.Name, pass.Notes)
	}
	return r.api.Result(request, requeue.Sooner(pass.RequeueAfter, s.recheckAfter), errors.Join(pass.Err(), reported))
}

// report writes the status if it changed, also where requests failed.
func (r *Reconciler) report(ctx context.Context, s *snapshot, pass *distribution.Pass) error {
	if r.emitted.Changed(s.object.Name, s.input.Invalid) {
		r.api.Event(s.object, corev1.EventTypeWarning, reasonInvalidSpec, s.input.Invalid+": mend the spec")
	}
	is := *s.object
	is.Status = pass.Status(s.object.Status, s.object.Generation, s.input.Now)
	_, err := r.status.Write(ctx, s.object, &is, nil)
	return err
}

// reasonInvalidSpec is the reason of an event: the spec cannot work, and the copies stay as they are.
const reasonInvalidSpec = "InvalidSpec"

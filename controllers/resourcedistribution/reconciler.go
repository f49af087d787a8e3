package resourcedistribution

import (
	"context"
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
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

type resourceDistribution = v1beta1.ResourceDistribution

// Reconciler keeps the copies of ResourceDistributions.
type Reconciler struct {
	api     *binding.Binding
	options Options

	distributions stored.Kind
	// confirmed are the distributions that the cache shows as they are stored.
	confirmed stored.Confirmed
	copies    copies
	watches   *watches
	// targets are those of distributions that were observed, by name, for events of namespaces.
	targets selections
	// known is what the last pass of a distribution found out, by name.
	known memory.Of[string, map[string]distribution.Known]
	// emitted are the events about invalid specs.
	emitted memory.Texts[string]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("resourcedistribution", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	kind := stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)}
	return &Reconciler{
		api: api, options: o, distributions: kind,
		copies: copies{ledger.New[*metav1.PartialObjectMetadata](api.Live, api.Now)}, watches: newWatches(api),
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
	p := newPlan(s)
	if p.needsObject() {
		after, err := r.confirmed.Confirm(ctx, r.api.Live, r.distributions.GVK, s.object)
		if err != nil || after > 0 {
			return r.api.Result(request, after, err)
		}
	}
	all := p.pass()
	err = driver.Run(ctx, all, driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now, Isolation: driver.Namespaces,
		Owner: request.NamespacedName, Ledgers: []driver.Recorder{r.copies, r.distributions.Writes},
	})
	r.known.Note(request.Name, func(known *map[string]distribution.Known) { *known = p.copies.of.Known() })
	r.emitInvalid(s)
	if r.options.Explain != nil {
		r.options.Explain(ctx, request.Name, all.Notes())
	}
	return r.api.Result(request, requeue.Sooner(all.RequeueAfter(), s.recheckAfter), err)
}

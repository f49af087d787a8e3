package resourcedistribution

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

type resourceDistribution = v1beta1.ResourceDistribution

// reasonInvalidSpec is the reason of an event: the spec cannot work, and the copies stay as they are.
const reasonInvalidSpec = "InvalidSpec"

// Reconciler keeps the copies of ResourceDistributions.
type Reconciler struct {
	api     *binding.Binding
	options Options
	send    driver.Send

	distributions stored.Kind
	// confirmed are the distributions that the cache shows as they are stored.
	confirmed stored.Confirmed
	watches   *watches
	// known is what the last pass of a distribution found out, by its name and by namespace.
	known passes.Memory[string, map[string]known]
	// emitted are the events about invalid specs.
	emitted passes.Texts[string]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("resourcedistribution", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, send: runtimeclient.Sender(api.Client, api.Live),
		watches:       &watches{api: api, all: map[watched]*watch{}},
		distributions: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.watches.mgr = mgr
	return r.api.Bind(mgr, "resourcedistribution-controller", o).
		For(stored.Untyped(gvk()), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.all),
			builder.WithPredicates(namespaceEvents())).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(distribution.Kind) }

// Reconcile brings the copies of one distribution up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.unsynced() {
		return ctrl.Result{RequeueAfter: s.recheckAfter}, nil
	}
	p := newPlan(s)
	if len(p.tasks) > 0 {
		after, err := r.confirmed.Confirm(ctx, r.api.Live, r.distributions.GVK, s.object)
		if err != nil || after > 0 {
			return r.api.Result(request, after, err)
		}
	}
	for i, err := range driver.Isolated(p.tasks, func(t *task) error { return r.do(ctx, p, t) }) {
		if panicked := new(driver.PanicError); errors.As(err, &panicked) {
			p.end(p.tasks[i], nil, false, p.tasks[i].failed(err))
		}
	}
	r.known.Note(request.Name, func(known *map[string]known) { *known = p.remembered() })
	err = errors.Join(p.err(), r.report(ctx, p))
	if r.emitted.Changed(request.Name, s.invalid) {
		r.api.Event(s.object, corev1.EventTypeWarning, reasonInvalidSpec, s.invalid+": mend the spec")
	}
	return r.api.Result(request, passes.Sooner(p.requeueAfter, s.recheckAfter), err)
}

// do executes a task. It returns the error of a request that another try may mend.
func (r *Reconciler) do(ctx context.Context, p *plan, t *task) error {
	if t.action == actionDelete {
		_, err := r.send(ctx, p.resource.deletion(t.copied))
		p.end(t, nil, true, t.failed(client.IgnoreNotFound(err)))
	} else {
		live, wrote, f := r.maintain(ctx, p.resource, t)
		p.end(t, live, wrote, f)
	}
	if t.failure == nil {
		return nil
	}
	return t.failure.err
}

// maintain turns the object of the name into a copy. It returns the copy, and whether it was written.
func (r *Reconciler) maintain( //nolint:ireturn // as the client answers
	ctx context.Context, resource *resource, t *task,
) (live write.Object, wrote bool, _ *failed) {
	if t.action == actionCreate {
		made, err := r.send(ctx, resource.creation(t.namespace))
		if !apierrors.IsAlreadyExists(err) {
			return made, true, failedBy(v1beta1.ResourceDistributionCreateResourceFailed, err)
		}
	}
	live, err := r.send(ctx, &write.Write{Verb: write.Get, Object: resource.named(t.namespace)})
	if client.IgnoreNotFound(err) != nil {
		return nil, false, failedBy(v1beta1.ResourceDistributionGetResourceFailed, err)
	}
	object, found := live.(*unstructured.Unstructured)
	condition := v1beta1.ResourceDistributionUpdateResourceFailed
	if !found {
		condition = v1beta1.ResourceDistributionCreateResourceFailed
	}
	writes, f := resource.writes(t.namespace, object)
	for _, w := range writes {
		if live, err = r.send(ctx, w); err != nil {
			return nil, false, failedBy(condition, err)
		}
	}
	return live, len(writes) > 0, f
}

// report writes the status, if it changed. A distribution that is gone needs none.
func (r *Reconciler) report(ctx context.Context, p *plan) error {
	is := *p.object
	is.Status = p.status()
	if _, err := r.api.WriteStatus(ctx, r.distributions, p.object, &is, nil); !write.IsOutdated(err) {
		return err
	}
	return nil
}

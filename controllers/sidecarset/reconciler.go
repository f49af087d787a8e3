package sidecarset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/podwrites"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler brings the pods of SidecarSets to what the sets ask for.
type Reconciler struct {
	api     *binding.Binding
	options Options

	sets      stored.Kind
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	memory    setMemory
	meters    meters
	// failures are those that were emitted as events.
	failures memory.Texts[string]
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
		api: api, options: o.withDefaults(), meters: meters, sets: sets,
		revisions: ledger.New[*appsv1.ControllerRevision](api.Live, api.Now),
		memory:    setMemory{newWrites: func() *podwrites.Writes { return podwrites.New(api.Live, api.Now) }},
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
	p, err := r.options.plan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	known := r.memory.of(request.Name)
	known.took.Store(int64(r.api.Now().Sub(begun)))
	err = r.run(ctx, p.pass(), s.key(), known.pods)
	return r.report(ctx, request, p, err)
}

// run makes a pass. pods records the answers of pods.
func (r *Reconciler) run(ctx context.Context, of pass, owner types.NamespacedName, pods driver.Recorder) error {
	return driver.Run(ctx, of, driver.Options[*rollout.Change]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now, Owner: owner,
		Ledgers: []driver.Recorder{r.sets.Writes, r.revisions, pods},
		Answered: func(c *rollout.Change, answer write.Object, err error) {
			switch c.Action {
			case rollout.ActionAsk:
				r.answers.Add(c.Object.GetName(), apierrors.IsNotFound(err), answersFor)
			case rollout.ActionRead:
				pods.Record(owner, &c.Write, answer, err)
			case rollout.ActionReset:
				r.emitReset(c.Pod, err)
			case rollout.ActionMark, rollout.ActionUpdate:
			}
		},
	})
}

// report emits the events of a pass, and keeps what the next one needs.
func (r *Reconciler) report(ctx context.Context, request ctrl.Request, p *plan, failed error) (ctrl.Result, error) {
	known, reported := r.memory.of(request.Name), p.status == nil || p.status.Err() == nil
	if why := p.rejected(); why != nil {
		if !reported {
			return ctrl.Result{}, failed
		}
		r.emitInvalid(p, known, why)
		return ctrl.Result{}, reconcile.TerminalError(why)
	}
	if !p.isStored() {
		return ctrl.Result{}, failed
	}
	known.held = p.pods.Held()
	if r.options.Explain != nil {
		r.options.Explain(ctx, request.Name, p.pods.Notes())
	}
	r.emitBlocked(p)
	r.emitFailures(p)
	stall := r.emitStall(p, known)
	r.emitLacking(p, known)
	failed = errors.Join(p.unread, failed)
	if !reported {
		return ctrl.Result{}, failed
	}
	why := p.specError()
	r.emitInvalid(p, known, why)
	if why != nil { // the pods and their revisions may not be known
		return ctrl.Result{}, failure.Terminal(failed, needsOtherSpec)
	}
	after := requeue.Sooner(requeue.Sooner(p.pods.RequeueAfter(), p.recheckAfter), stall)
	return r.api.Result(request, after, failed)
}

// release removes a set that is gone from the conditions of its pods.
func (r *Reconciler) release(ctx context.Context, name string) (ctrl.Result, error) {
	pods, err := r.podsOf(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := rollout.Release(pods, name, r.api.Now())
	err = r.run(ctx, p, types.NamespacedName{Name: name}, podwrites.New(r.api.Live, r.api.Now))
	return ctrl.Result{RequeueAfter: p.RequeueAfter()}, err
}

// needsOtherSpec reports whether only another spec can mend an error.
func needsOtherSpec(err error) bool {
	_, is := err.(*rollout.SpecError) //nolint:errorlint // one that is wrapped is of a write
	return is
}

package sidecarset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
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
	pods      *ledger.Ledger[*corev1.Pod]
	memory    passes.Memory[string, state]
	meters    meters
	// failures are those that were emitted as events.
	failures passes.Texts[string]
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
		pods:      stored.NewPodWrites(api.Live, api.Now),
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
	return r.api.Bind(mgr, "sidecarset-controller", o).
		For(stored.Untyped(gvk()), builder.WithPredicates(setEvents())).
		Watches(&corev1.Pod{}, r.podEvents()).
		WatchesMetadata(&corev1.Namespace{}, namespaces, builder.WithPredicates(relabelled)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("SidecarSet") }

// Reconcile brings the pods of one SidecarSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	begun := r.api.Now()
	s, err := r.observe(ctx, request.Name)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case s == nil:
		r.forget(request.Name)
		return ctrl.Result{}, nil
	case s.set.DeletionTimestamp != nil:
		return ctrl.Result{}, nil
	}
	p, err := r.options.plan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.memory.Note(request.Name, func(known *state) { known.took = r.api.Now().Sub(begun) })
	err = r.run(ctx, p)
	return r.report(ctx, request, p, err)
}

// run sends the writes of a pass: the revision, the pods, the status, and the deletion of surplus revisions.
func (r *Reconciler) run(ctx context.Context, p *plan) error {
	var failed error
	if p.store != nil {
		failed = r.api.Run(ctx, p.key(), p.store, r.revisions)
	}
	if p.isStored() {
		failed = errors.Join(failed, r.update(ctx, p))
	}
	if p.unreported = r.writeStatus(ctx, p); p.unreported != nil {
		return errors.Join(failed, p.unreported)
	}
	return errors.Join(failed, r.api.WriteEach(ctx, p.key(), p.trim(), r.revisions))
}

// update makes the pass over the pods.
func (r *Reconciler) update(ctx context.Context, p *plan) error {
	return driver.Run(ctx, p.rollout, driver.Options[*rollout.Change]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now, Owner: p.key(),
		Ledgers: []driver.Recorder{r.pods},
		Answered: func(c *rollout.Change, _ write.Object, err error) {
			if c.Action == rollout.ActionReset {
				r.emitReset(c.Pod, err)
			}
		},
	})
}

// writeStatus writes the status, if it changed. An outdated write has not failed: the set is about to be enqueued.
func (r *Reconciler) writeStatus(ctx context.Context, p *plan) error {
	status, known := p.reported()
	if !known {
		return nil
	}
	fresh := *p.set
	fresh.Status = status
	_, err := r.api.WriteStatus(ctx, r.sets, p.set, &fresh, map[string]any{ // the schema requires them
		"matchedPods": status.MatchedPods, "updatedPods": status.UpdatedPods, "readyPods": status.ReadyPods,
	})
	if write.IsOutdated(err) {
		return nil
	}
	return err
}

// report emits the events of a pass, and keeps what the next one needs.
func (r *Reconciler) report(ctx context.Context, request ctrl.Request, p *plan, failed error) (ctrl.Result, error) {
	known, reported := r.memory.Recall(request.Name), p.unreported == nil
	defer r.memory.Note(request.Name, func(s *state) { *s = known })
	if why := p.rejected(); why != nil {
		if !reported {
			return ctrl.Result{}, failed
		}
		r.emitInvalid(p, &known, why)
		return ctrl.Result{}, reconcile.TerminalError(why)
	}
	if !p.isStored() {
		return ctrl.Result{}, failed
	}
	known.held = p.rollout.Held()
	if r.options.Explain != nil {
		r.options.Explain(ctx, request.Name, p.rollout.Notes())
	}
	r.emitBlocked(p)
	r.emitFailures(p)
	stall := r.emitStall(p, &known)
	r.emitLacking(p, &known)
	sent := failed == nil
	failed = errors.Join(p.unread, failed)
	if !reported {
		return ctrl.Result{}, failed
	}
	why := p.specError()
	r.emitInvalid(p, &known, why)
	if why != nil { // the pods and their revisions may not be known
		if sent { // only another spec can mend the rest
			failed = reconcile.TerminalError(failed)
		}
		return ctrl.Result{}, failed
	}
	after := passes.Sooner(passes.Sooner(p.rollout.RequeueAfter(), p.recheckAfter), stall)
	return r.api.Result(request, after, failed)
}

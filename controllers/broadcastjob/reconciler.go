package broadcastjob

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

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

type broadcastJob = v1beta1.BroadcastJob

// Reconciler runs BroadcastJobs.
type Reconciler struct {
	api     *binding.Binding
	options Options

	jobs stored.Kind
	// confirmed are the jobs that the cache shows as they are stored.
	confirmed  stored.Confirmed
	unfinished *watches.Unfinished[broadcastJob, *eligible.Rule]
	pods       *ledger.Ledger[*corev1.Pod]
	// waits are what jobs waited for at the end of their last passes.
	waits memory.Of[types.NamespacedName, conditions.Wait]
	// emitted are the warnings that were emitted as events.
	emitted memory.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("broadcastjob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, jobs: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		pods:       lean.NewWrites(api.Live, api.Now),
		unfinished: watches.NewUnfinished(gvk(), broadcast.Over, ruleOf),
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	indexer := mgr.GetFieldIndexer()
	if err := owned.Index(ctx, indexer, &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, nodeField, nodeOf); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	if err := r.unfinished.Index(ctx, indexer); err != nil {
		return fmt.Errorf("index BroadcastJobs: %w", err)
	}
	return r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutCounters())).
		Watches(&corev1.Pod{}, owned.By(gvk().Group, gvk().Kind), builder.WithPredicates(podChanges())).
		Watches(&corev1.Node{}, r.nodeEvents()).
		Complete(r)
}

const controllerName = "broadcastjob-controller"

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("BroadcastJob") }

// Reconcile brings one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.invalid != nil {
		return ctrl.Result{}, r.reject(s)
	}
	p, err := newPlan(s, r.jobs)
	if err != nil {
		return ctrl.Result{}, err
	}
	if p.needsObject() {
		after, err := r.confirmed.Confirm(ctx, r.api.Live, r.jobs.GVK, s.job)
		if err != nil || after > 0 {
			return r.api.Result(request, after, err)
		}
	}
	err = r.api.Run(ctx, s.key(), p.pass(), r.pods, r.jobs.Writes)
	r.remember(p)
	r.emit(ctx, p)
	return r.api.Result(request, p.after, err)
}

// remember keeps what the next pass needs.
func (r *Reconciler) remember(p *plan) {
	r.waits.Note(p.key(), func(wait *conditions.Wait) { *wait = p.wait })
	for _, pod := range p.found {
		r.pods.Created(p.key(), pod)
	}
}

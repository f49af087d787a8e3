package persistentpodstate

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler records where pods were ready.
type Reconciler struct {
	api     *binding.Binding
	options Options

	states stored.Kind
	// index has what the events have shown, to find the PersistentPodStates of pods, workloads and nodes.
	index *podstates.Index
	kinds *kinds
	// emitted are the events about a state that lasts.
	emitted memory.Texts[about]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("persistentpodstate", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	kind := stored.Kind{GVK: podstates.Kind(), Writes: stored.NewWrites(api.Live, api.Now)}
	r := &Reconciler{
		api: api, options: o, states: kind, index: podstates.NewIndex(), kinds: newKinds(),
	}
	r.kinds.events = r.workloadEvents
	return r, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const controllerName = "persistentpodstate-controller"

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	configuration, err := r.configuration(mgr)
	if err != nil {
		return err
	}
	c, err := r.api.Bind(mgr, controllerName, o).
		Watches(stored.Untyped(podstates.Kind()), r.stateEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(&corev1.Node{}, r.nodeEvents()).
		WatchesRawSource(configuration).
		Build(r)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	return r.kinds.start(ctx, mgr, c)
}

// Reconcile brings the PersistentPodState of a name up to date, and creates or deletes the one that a workload of the
// name asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := newPlan(s)
	if err == nil && p.needsNodes {
		if err = r.observeAllNodes(ctx, s); err == nil {
			p, err = newPlan(s)
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.emitOccupied(s)
	err = driver.Run(ctx, p.pass(), driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now,
		Owner: request.NamespacedName, Ledgers: []driver.Recorder{r.states.Writes},
		Answered: func(w *write.Write, _ write.Object, err error) { r.emitDeleted(s, w, err) },
	})
	return r.report(ctx, request, p, err)
}

// report emits the events of a pass.
func (r *Reconciler) report(ctx context.Context, request ctrl.Request, p *plan, err error) (ctrl.Result, error) {
	r.emitRejected(p)
	if failed := p.generating.failed; failed != nil {
		if p.generating.invalid != nil {
			return ctrl.Result{}, reconcile.TerminalError(failed)
		}
		return ctrl.Result{}, failed
	}
	switch {
	case p.state == nil || p.state.DeletionTimestamp != nil:
		r.forget(request.NamespacedName, p.latest.Cached)
		return ctrl.Result{RequeueAfter: p.latest.RecheckAfter}, nil
	case p.unsupported != "":
		r.complain(p.snapshot)
		return ctrl.Result{RequeueAfter: p.recheckAfter}, nil
	case !p.reported || p.status != nil && p.status.Err() != nil:
		return ctrl.Result{}, err
	}
	r.emit(p.snapshot, p.records)
	if r.options.Explain != nil {
		r.options.Explain(ctx, request.NamespacedName, p.records.Notes)
	}
	return r.api.Result(request, requeue.Sooner(p.records.RequeueAfter, p.latest.RecheckAfter), err)
}

func (r *Reconciler) forget(name types.NamespacedName, cached bool) {
	if !cached {
		r.states.Writes.Forget(name)
	}
	for _, reason := range lasting() {
		r.emitted.Forget(about{name, reason})
	}
}

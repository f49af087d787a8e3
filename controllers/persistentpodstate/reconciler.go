package persistentpodstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Reconciler records where pods were ready.
type Reconciler struct {
	api     *binding.Binding
	options Options

	states stored.Kind
	status statuspatch.Writer
	// index has what the events have shown, to find the PersistentPodStates of pods, workloads and nodes.
	index *podstates.Index
	kinds *kinds
	// emitted are the events about a state that lasts.
	emitted once.Texts[about]
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
		api: api, options: o, states: kind, status: statuspatch.Writer{Client: c, Kind: kind}, index: podstates.NewIndex(), kinds: newKinds(),
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

// Reconcile brings the PersistentPodState of a name up to date, and creates or deletes the one that a workload of the name asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.generate(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if s.state == nil || s.state.DeletionTimestamp != nil {
		r.forget(request.NamespacedName, s.latest.Cached)
		return ctrl.Result{RequeueAfter: s.latest.RecheckAfter}, nil
	}
	if err := r.observeWorkload(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if s.unsupported != "" {
		r.complain(s)
		return ctrl.Result{RequeueAfter: s.recheckAfter}, nil
	}
	pass := podstate.Plan(s.input)
	if err := s.err; err != nil {
		return ctrl.Result{}, err
	}
	is := *s.state
	is.Status = pass.Status
	if _, err := r.status.Write(ctx, s.state, &is, map[string]any{"observedGeneration": s.state.Generation}); err != nil {
		return ctrl.Result{}, err
	}
	err = r.deleteStuck(ctx, s, pass.Stuck)
	r.emit(s, &pass)
	if r.options.Explain != nil {
		r.options.Explain(ctx, request.NamespacedName, pass.Notes)
	}
	return r.api.Result(request, requeue.Sooner(pass.RequeueAfter, s.latest.RecheckAfter), err)
}

// deleteStuck deletes pods that wait for labels which no node has, so that their workload creates them elsewhere.
func (r *Reconciler) deleteStuck(ctx context.Context, s *snapshot, stuck []*corev1.Pod) error {
	var failures []error
	for _, pod := range stuck {
		if err := r.deletePod(ctx, pod); err != nil {
			failures = append(failures, err)
			continue
		}
		r.api.Normalf(s.state, reasonRecreates, "Deleted pod %s, which waited for labels that no node has; the workload creates the pod again", pod.Name)
	}
	return errors.Join(failures...)
}

func (r *Reconciler) forget(name types.NamespacedName, cached bool) {
	if !cached {
		r.states.Writes.Forget(name)
	}
	for _, reason := range lasting() {
		r.emitted.Forget(about{name, reason})
	}
}

package persistentpodstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler records where pods were ready.
type Reconciler struct {
	api     *binding.Binding
	options Options

	// index has what the events have shown, to find the PersistentPodStates of pods, workloads and nodes.
	index *podstates.Index
	kinds *kinds
	// emitted are the warnings about a PersistentPodState that last.
	emitted passes.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("persistentpodstate", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	return &Reconciler{api: api, options: o, index: podstates.NewIndex(), kinds: newKinds()}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	c, err := r.api.Bind(mgr, "persistentpodstate-controller", o).
		Watches(stored.Untyped(podstates.Kind()), r.stateEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(&corev1.Node{}, r.nodeEvents()).
		Build(r)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	r.kinds = &kinds{
		watched: map[schema.GroupKind]watchedKind{}, cache: mgr.GetCache(), controller: c, events: r.workloadEvents,
	}
	if err := r.kinds.watch(ctx, statefulSets()); err != nil { // the controller starts with them
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(r.followWhiteList)); err != nil {
		return fmt.Errorf("follow the white list: %w", err)
	}
	return nil
}

// Reconcile brings the PersistentPodState of a name up to date, and creates or deletes the one that a workload of the
// name asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := newPlan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.run(ctx, s, p)
	if write.IsOutdated(err) || apierrors.IsAlreadyExists(err) { // the cache lags behind
		return ctrl.Result{RequeueAfter: together}, nil
	}
	return r.api.Result(request, p.requeueAfter, err)
}

// run sends the writes of a plan one after the other, and emits events after the writes that they announce. The event
// of a PersistentPodState that is created, updated or deleted brings the next pass.
func (r *Reconciler) run(ctx context.Context, s *snapshot, p *plan) error {
	send := func(w *write.Write) error {
		if _, err := r.api.Send(ctx, s.name, w); err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		return nil
	}
	if p.generate != nil {
		err := send(p.generate)
		if !apierrors.IsInvalid(err) {
			return err
		}
		p.reject(err)
		if s.state == nil { // a change of the workload, or of the object that is in the way, brings the next pass
			r.emit(s, p)
			return reconcile.TerminalError(err)
		}
	}
	if p.status != nil {
		if err := send(p.status); err != nil {
			return err
		}
	}
	r.emit(s, p)
	var failed []error
	for i, answer := range r.api.SendEach(ctx, s.name, write.Deletions(p.stuck)) {
		if answer.Err != nil {
			failed = append(failed, fmt.Errorf("delete pod %s: %w", p.stuck[i].Name, answer.Err))
			continue
		}
		r.api.Normalf(s.state, reasonRecreates, textRecreates, p.stuck[i].Name)
	}
	return errors.Join(failed...)
}

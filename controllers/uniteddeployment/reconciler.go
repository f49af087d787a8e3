package uniteddeployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings UnitedDeployments to what they ask for.
type Reconciler struct {
	api     *binding.Binding
	options Options

	objects stored.Kind
	status  statuspatch.Writer
	// children are the writes of workloads, by kind. It has the kinds that are installed.
	children  map[schema.GroupVersionKind]*ledger.Ledger[*unstructured.Unstructured]
	applies   applied.Writer
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	memory    memory.Of[types.NamespacedName, subsets.Knowledge]
	emitted   once.Texts[emission]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("uniteddeployment", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		api: api, options: o, children: map[schema.GroupVersionKind]*ledger.Ledger[*unstructured.Unstructured]{},
	}
	r.objects = stored.Kind{GVK: subsets.OwnerKind(), Writes: stored.NewWrites(api.Live, api.Now)}
	r.status = statuspatch.Writer{Client: c, Kind: r.objects}
	r.applies = applied.Writer{Client: c, Live: api.Live, Manager: FieldManager}
	r.revisions = ledger.New[*appsv1.ControllerRevision](api.Live, api.Now)
	for _, kind := range subsets.Kinds() {
		r.children[kind] = stored.NewWrites(api.Live, api.Now)
	}
	return r, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=uniteddeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=uniteddeployments/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=uniteddeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler, which watches workloads whole: the cache options of
// controllers.ManagerOptions keep little of those that no UnitedDeployment controls. It must come before the manager
// starts. Kinds of workloads that are not installed are left out.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(owned.Index(ctx, indexer, &appsv1.ControllerRevision{}), IndexPods(ctx, indexer)); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	b := r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(subsets.OwnerKind()), builder.WithPredicates(conditions.IgnoreRewording(
			string(v1beta1.SubsetProvisioned), string(v1beta1.SubsetUpdated), string(v1beta1.SubsetFailure)))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ownerOfPod), builder.WithPredicates(podChanges()))
	for _, kind := range subsets.Kinds() {
		installed, err := binding.Installed(mgr.GetRESTMapper(), kind)
		switch {
		case err != nil:
			return err
		case !installed:
			delete(r.children, kind)
			continue
		}
		if err := owned.Index(ctx, indexer, stored.Untyped(kind)); err != nil {
			return fmt.Errorf("index %s: %w", kind, err)
		}
		b = b.Watches(stored.Untyped(kind), owned.By(v1beta1.GroupVersion.Group, subsets.OwnerKind().Kind))
	}
	return b.Complete(r)
}

// stall reports whether the object stands still, and keeps what it waits for.
func (r *Reconciler) stall(s *snapshot, p *subsets.Pass, status *v1beta1.UnitedDeploymentStatus) {
	wait, after := s.Stall(p, status)
	s.recheckAfter = requeue.Sooner(s.recheckAfter, after)
	r.memory.Note(s.key(), func(k *subsets.Knowledge) { k.Wait = wait })
}

const controllerName = "uniteddeployment-controller"

// FieldManager is the name under which the reconciler applies workloads.
const FieldManager = "kruisekit-uniteddeployment"

// Reconcile brings one UnitedDeployment a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.invalid != nil {
		if err = r.report(ctx, s, subsets.Unusable(s.object, s.invalid, s.now),
			subsets.Outcome{Fault: s.invalid}); err == nil {
			err = reconcile.TerminalError(s.invalid)
		}
		return r.api.Result(request, s.recheckAfter, err)
	}
	var o subsets.Outcome
	p, err := subsets.Plan(s.Snapshot)
	if err != nil {
		o.Revise = err
	} else {
		s.recheckAfter = requeue.Sooner(s.recheckAfter, p.RecheckAfter)
		o = r.execute(ctx, s, p)
		o.Fault = p.Fault()
	}
	status := s.Status(p, o)
	if p != nil {
		r.stall(s, p, &status)
	}
	err = r.report(ctx, s, status, o)
	return r.api.Result(request, s.recheckAfter, errors.Join(err, o.Err()))
}

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

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings UnitedDeployments to what they ask for.
type Reconciler struct {
	api     *binding.Binding
	options Options

	objects stored.Kind
	// children are the writes of workloads, by kind. It has the kinds that are installed.
	children  map[schema.GroupVersionKind]*ledger.Ledger[*unstructured.Unstructured]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	// confirmed are the objects that the cache shows as they are stored.
	confirmed stored.Confirmed
	memory    memory.Of[types.NamespacedName, subsets.Knowledge]
	emitted   memory.Texts[emission]
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

const controllerName = "uniteddeployment-controller"

// Reconcile brings one UnitedDeployment a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s, r.objects)
	if p.needsObject() {
		after, err := r.confirmed.Confirm(ctx, r.api.Live, r.objects.GVK, s.object)
		if err != nil || after > 0 {
			return r.api.Result(request, after, err)
		}
	}
	err = r.api.Run(ctx, s.key(), p.pass(), r.ledgers()...)
	r.remember(p)
	r.emit(ctx, p)
	return r.api.Result(request, p.recheckAfter, err)
}

// ledgers record the answers to writes, each those of its kind.
func (r *Reconciler) ledgers() []driver.Recorder {
	all := []driver.Recorder{r.objects, r.revisions}
	for kind, writes := range r.children {
		all = append(all, stored.Kind{GVK: kind, Writes: writes})
	}
	return all
}

// remember keeps what a pass has learned.
func (r *Reconciler) remember(p *plan) {
	for _, workload := range p.found {
		r.children[workload.GroupVersionKind()].Created(p.key(), workload)
	}
	if p.decision != nil {
		r.memory.Note(p.key(), func(k *subsets.Knowledge) { *k = p.Known })
	}
}

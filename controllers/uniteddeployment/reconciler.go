package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler brings UnitedDeployments to what they ask for.
type Reconciler struct {
	api     *binding.Binding
	options Options

	objects stored.Kind
	// children are the kinds of workloads that are installed.
	children  map[schema.GroupVersionKind]stored.Kind
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	// confirmed are the objects that the cache shows as they are stored.
	confirmed stored.Confirmed
	emitted   passes.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("uniteddeployment", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{api: api, options: o, children: map[schema.GroupVersionKind]stored.Kind{}}
	r.objects = stored.Kind{GVK: subsets.OwnerKind(), Writes: stored.NewWrites(api.Live, api.Now)}
	r.revisions = ledger.New[*appsv1.ControllerRevision](api.Live, api.Now)
	for _, kind := range subsets.Kinds() {
		r.children[kind] = stored.Kind{GVK: kind, Writes: stored.NewWrites(api.Live, api.Now)}
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
	b := r.api.Bind(mgr, "uniteddeployment-controller", o).
		For(stored.Untyped(subsets.OwnerKind()), builder.WithPredicates(workloads.IgnoreRewording(
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

// Reconcile brings one UnitedDeployment a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s)
	if p.needsObject() {
		after, err := r.confirmed.Confirm(ctx, r.api.Live, r.objects.GVK, s.Object)
		if err != nil || after > 0 {
			return r.api.Result(request, after, err)
		}
	}
	if p.decision != nil {
		r.run(ctx, p)
	}
	if err = r.report(ctx, p); err == nil && p.invalid != nil {
		err = reconcile.TerminalError(p.invalid) // only another spec helps
	}
	r.emit(ctx, p)
	return r.api.Result(request, p.recheckAfter, errors.Join(p.outcome.Err(), err))
}

// run sends the writes of a decision in their order: the revision, the labels of pods, on which the allocation was
// decided, then the workloads. A workload that is refused holds up no other workload.
func (r *Reconciler) run(ctx context.Context, p *plan) {
	d, out := p.decision, &p.outcome
	if out.Revise = r.api.Run(ctx, p.key(), d.Store, r.revisions); out.Revise != nil {
		return
	}
	if out.Provision = r.api.WriteEach(ctx, p.key(), p.labels(), r.ledgers()...); out.Provision != nil {
		return
	}
	p.executed = true
	var created atomic.Int32
	creations := driver.Each(d.Creates, func(t *subsets.Target) error {
		creation := &write.Write{Verb: write.Create, Object: t.Rendered}
		have, existed, err := owned.Create(ctx, r.api, p.Object, creation, r.children[p.Template.Kind])
		if have == nil && err == nil {
			err = errGone
		}
		if err != nil {
			return fmt.Errorf("create subset %s: %w", t.Subset.Name, err)
		}
		if !existed {
			created.Add(1)
		}
		return nil
	})
	p.created = int(created.Load())
	gone, err := r.api.DeleteEach(ctx, p.key(), p.deletions(), r.ledgers()...)
	p.deleted, out.Provision = len(gone), errors.Join(creations.Err(), err)
	for _, writes := range [][]*write.Write{d.Updates, write.Deletions(d.Evictions), p.trimmed()} {
		out.Update = errors.Join(out.Update, r.api.WriteEach(ctx, p.key(), writes, r.ledgers()...))
	}
}

// errGone is the error of a creation whose name another object had, which is gone by now.
var errGone = errors.New("the object that had the name was deleted")

// report writes the status, if it changed, also where another write failed.
func (r *Reconciler) report(ctx context.Context, p *plan) error {
	is := *p.Object
	is.Status = p.status()
	_, err := r.api.WriteStatus(ctx, r.objects, p.Object, &is, map[string]any{ // the schema requires them
		"replicas": is.Status.Replicas, "updatedReplicas": is.Status.UpdatedReplicas,
		"currentRevision": is.Status.CurrentRevision,
	})
	return err
}

// ledgers record the answers to writes, each those of its kind.
func (r *Reconciler) ledgers() []driver.Recorder {
	all := []driver.Recorder{r.objects, r.revisions}
	for _, kind := range r.children {
		all = append(all, kind)
	}
	return all
}

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
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/subsets"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings UnitedDeployments to what they ask for.
type Reconciler struct {
	api     *binding.Binding
	options Options

	objects stored.Kind
	status  statuspatch.Writer
	// children are the writes of workloads, by kind. It has the kinds that are installed.
	children map[schema.GroupVersionKind]*ledger.Ledger[*unstructured.Unstructured]
	history  history.Writer
	memory   memory.Of[types.NamespacedName, knowledge]
	emitted  once.Texts[emission]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("uniteddeployment", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{api: api, options: o, children: map[schema.GroupVersionKind]*ledger.Ledger[*unstructured.Unstructured]{}}
	r.objects = stored.Kind{GVK: gvk(), Writes: ledger.New[*unstructured.Unstructured](api.Live, api.Now)}
	r.status = statuspatch.Writer{Client: c, Kind: r.objects}
	r.history = history.Writer{Client: c, Live: api.Live, Writes: ledger.New[*appsv1.ControllerRevision](api.Live, api.Now)}
	for _, kind := range subsets.Kinds() {
		r.children[kind] = ledger.New[*unstructured.Unstructured](api.Live, api.Now)
	}
	return r, nil
}

// The rights that the reconciler needs are not generated, because the manager does not run it yet:
//
//	apps.kruise.io uniteddeployments: get, list, watch; uniteddeployments/status: patch; uniteddeployments/finalizers: update
//	apps.kruise.io clonesets, statefulsets and apps deployments, statefulsets: get, list, watch, create, patch, delete
//	apps controllerrevisions: get, list, watch, create, patch, delete
//	pods: get, list, watch, patch, delete; events: create, patch

// SetupWithManager registers the reconciler. It must come before the manager starts. Kinds of workloads that are not installed are left out.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(owned.Index(ctx, indexer, &appsv1.ControllerRevision{}), IndexPods(ctx, indexer)); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	b := r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(conditions.IgnoreRewording(
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
		b = b.Watches(stored.Untyped(kind), owned.By(v1beta1.GroupVersion.Group, gvk().Kind))
	}
	return b.Complete(r)
}

const controllerName = "uniteddeployment-controller"

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("UnitedDeployment") }

// Reconcile brings one UnitedDeployment a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := s.plan()
	r.execute(ctx, s, p)
	err = errors.Join(r.report(ctx, s, p), p.provisionErr, p.updateErr)
	if err == nil && s.invalid != nil {
		err = reconcile.TerminalError(s.invalid)
	}
	return r.api.Result(request, p.after.After(), err)
}

package podunavailablebudget

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler keeps the statuses of PodUnavailableBudgets, and stamps their pods.
type Reconciler struct {
	api *binding.Binding

	budgets   stored.Kind
	policy    pub.Policy
	workloads *replicas.Finder
	// rules are the budgets as events of pods look at them.
	rules   *watches.Rules[podUnavailableBudget, pub.Budget]
	emitted passes.Texts[types.NamespacedName]

	// watching is held while watches of workloads are started.
	watching   sync.Mutex
	started    bool
	controller controller.Controller
	cache      cache.Cache
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("podunavailablebudget", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api:       api,
		budgets:   stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		policy:    o.Policy,
		rules:     watches.NewRules(rule),
		workloads: &replicas.Finder{Cached: c, Live: api.Live, Scales: c, Mapper: c.RESTMapper(), Now: api.Now},
	}, nil
}

// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="*",resources="*/scale",verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	c, err := r.api.Bind(mgr, "podunavailablebudget-controller", o).
		Watches(stored.Untyped(gvk()), r.budgetEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Build(r)
	if err != nil {
		return err
	}
	r.controller, r.cache = c, mgr.GetCache()
	r.workloads.Cached, r.workloads.Indexer, r.workloads.Mapper = mgr.GetCache(), mgr.GetCache(), mgr.GetRESTMapper()
	return nil
}

func gvk() schema.GroupVersionKind {
	return policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")
}

// catchUp is how long the reconciler waits for the cache to have what admission wrote to a status.
const catchUp = 200 * time.Millisecond

// Reconcile brings one budget up to date. The write of the status tests the version that was observed, so that nothing
// that admission has recorded is lost.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s, r.policy, r.api.Now())
	w, err := s.report(&p)
	if err == nil && w != nil {
		_, err = r.api.Send(ctx, s.key(), w, r.budgets.Writes)
	}
	switch {
	case write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write status: %w", err)
	}
	err = r.api.WriteEach(ctx, s.key(), p.records(s)) // a pod whose write fails keeps no other pod from its stamp
	r.emit(s, &p)
	return r.api.Result(request, p.after, err)
}

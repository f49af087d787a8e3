package podunavailablebudget

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Reconciler keeps the statuses of PodUnavailableBudgets, and stamps their pods.
type Reconciler struct {
	api     *binding.Binding
	options Options

	budgets   stored.Kind
	tracker   *tracker
	workloads *replicas.Finder
	events    emitter

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
		api: api, options: o,
		budgets:   stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		tracker:   &tracker{policy: o.Policy},
		workloads: &replicas.Finder{Cached: c, Live: api.Live, Scales: c, Mapper: c.RESTMapper(), Now: api.Now},
		events:    emitter{api: api},
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
	c, err := r.api.Bind(mgr, controllerName, o).
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

const controllerName = "podunavailablebudget-controller"

func gvk() schema.GroupVersionKind {
	return policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")
}

// Reconcile brings one budget up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p, err := r.report(ctx, s)
	if err != nil || p == nil {
		return ctrl.Result{}, err
	}
	r.events.emit(s, p)
	err = r.stamp(ctx, s, p.stamps)
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.notes)
	}
	return r.api.Result(request, p.after, err)
}

// attempts at a status that admission writes at the same time.
const attempts = 4

// report writes the status if it is another one, and returns the pass; nil where the budget is gone. After a conflict the pass is planned again
// with the live budget, so that no admitted disruption is lost.
func (r *Reconciler) report(ctx context.Context, s *snapshot) (*pass, error) {
	for attempt := 1; ; attempt++ {
		p, followed := r.plan(s)
		if !followed || !p.changed {
			return p, nil
		}
		err := r.write(ctx, s, p)
		if err == nil || apierrors.IsNotFound(err) {
			return p, client.IgnoreNotFound(err)
		}
		if !apierrors.IsConflict(err) || attempt == attempts {
			return nil, fmt.Errorf("write status: %w", err)
		}
		fresh := stored.Untyped(gvk())
		switch err := r.api.Live.Get(ctx, s.key(), fresh); {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read budget live: %w", err)
		case fresh.GetUID() != s.object.UID || fresh.GetGeneration() != s.object.Generation:
			return nil, errOutdated // the event of the change may have been seen before
		}
		if err := s.read(fresh); err != nil {
			return nil, err
		}
	}
}

// errOutdated is a spec that changed during the pass.
var errOutdated = errors.New("the budget changed during the pass")

// plan plans the pass while no event changes the counts. It reports false for a budget that was forgotten meanwhile.
func (r *Reconciler) plan(s *snapshot) (*pass, bool) {
	var p *pass
	followed := r.tracker.with(s.key(), func(t *tracked) {
		t.budget = s.budget // its records
		planned := plan(s, t, r.tracker.namespaces[s.budget.Namespace], r.api.Now())
		p = &planned
	})
	return p, followed
}

// write sends the status. It is refused where another writer has changed the budget.
func (r *Reconciler) write(ctx context.Context, s *snapshot, p *pass) error {
	is := *s.object
	is.Status = p.status
	patch, err := statuspatch.Merge(s.object, &is, map[string]any{ // the schema requires these
		"unavailableAllowed": p.status.UnavailableAllowed, "currentAvailable": p.status.CurrentAvailable,
		"desiredAvailable": p.status.DesiredAvailable, "totalReplicas": p.status.TotalReplicas,
	}, statuspatch.SameVersion)
	if err != nil || patch == nil {
		return err
	}
	answer := r.budgets.Named(s.key())
	if err := r.api.Client.Status().Patch(ctx, answer, patch); err != nil {
		return err
	}
	r.budgets.Writes.Patched(s.key(), answer)
	return nil
}

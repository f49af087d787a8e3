package podunavailablebudget

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
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
	p := newPlan(s, r.plan)
	err = driver.Run(ctx, p.pass(), driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now,
		Owner: request.NamespacedName, Ledgers: []driver.Recorder{r.budgets.Writes},
		Answered: func(w *write.Write, _ write.Object, err error) {
			if pod, is := w.Object.(*metav1.PartialObjectMetadata); is && err == nil {
				r.tracker.stamped(request.NamespacedName, stamp{pod.Name, pod.UID})
			}
		},
	})
	if !p.stands() {
		return ctrl.Result{}, err
	}
	r.events.emit(s, p.decided)
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.decided.notes)
	}
	return r.api.Result(request, p.decided.after, err)
}

// plan plans while no event changes the counts; nil for a budget that was forgotten meanwhile.
func (r *Reconciler) plan(s *snapshot) (p *pass) {
	r.tracker.with(s.key(), func(t *tracked) {
		t.budget = s.budget // its records
		planned := plan(s, t, r.tracker.namespaces[s.budget.Namespace], r.api.Now())
		p = &planned
	})
	return p
}

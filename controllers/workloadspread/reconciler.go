package workloadspread

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler keeps the statuses of WorkloadSpreads, and the deletion costs of their pods.
type Reconciler struct {
	api     *binding.Binding
	options Options

	spreads stored.Kind
	// index has what the events have shown, to find the WorkloadSpreads of a pod.
	index   *workloadspread.Index
	targets *workloadspread.Targets
	pods    patched
	emitted memory.Texts[about]
	pace    pacer

	// watching is held while watches of workloads are started.
	watching   sync.Mutex
	started    bool
	controller controller.Controller
	cache      cache.Cache
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("workloadspread", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if o.Versioned == nil {
		o.Versioned = subset.DefaultVersioned()
	}
	finder := &replicas.Finder{Cached: c, Live: api.Live, Scales: c, Mapper: c.RESTMapper(), Now: api.Now}
	return &Reconciler{
		api: api, options: o, index: workloadspread.NewIndex(),
		spreads: stored.Kind{GVK: workloadspread.Kind(), Writes: stored.NewWrites(api.Live, api.Now)},
		targets: &workloadspread.Targets{
			Finder: finder, Live: api.Live, Kinds: &workloadspread.Kinds{Live: api.Live, Namespace: o.Namespace, Now: api.Now},
		},
		pods: patched{lean.NewWrites(api.Live, api.Now)},
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="*",resources="*/scale",verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get

const controllerName = "workloadspread-controller"

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	if err := indexMatches(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	c, err := r.api.Bind(mgr, controllerName, o).
		Watches(stored.Untyped(workloadspread.Kind()), r.spreadEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Build(r)
	if err != nil {
		return err
	}
	r.controller, r.cache = c, mgr.GetCache()
	r.targets.Finder.Cached, r.targets.Finder.Indexer, r.targets.Finder.Mapper = mgr.GetCache(), mgr.GetCache(),
		mgr.GetRESTMapper()
	return nil
}

// matchField is the index of pods by the WorkloadSpread that their annotation names.
const matchField = "kruisekit.dev/workloadspread"

func indexMatches(ctx context.Context, indexer client.FieldIndexer) error {
	return binding.SharedIndex(indexer.IndexField(ctx, &corev1.Pod{}, matchField, func(o client.Object) []string {
		if pod, is := o.(*corev1.Pod); is {
			if m, is := subset.MatchOf(pod); is {
				return []string{m.Name}
			}
		}
		return nil
	}))
}

// Reconcile brings one WorkloadSpread up to date: the marks of pods, the status, and then the pods that are to be
// created elsewhere.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.early > 0 {
		return ctrl.Result{RequeueAfter: s.early}, nil
	}
	if s.gone {
		return ctrl.Result{}, r.api.Run(ctx, request.NamespacedName, release(s.pods))
	}
	p := newPlan(s)
	err = driver.Run(ctx, p.pass(), driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now,
		Owner: request.NamespacedName, Ledgers: []driver.Recorder{r.spreads.Writes, r.pods},
		Answered: func(w *write.Write, _ write.Object, err error) { r.emitFailure(s, w, err) },
	})
	if !p.status.Stands() {
		return ctrl.Result{}, err
	}
	r.emit(s, p.decided)
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.decided.notes)
	}
	return r.api.Result(request, p.decided.after, err)
}

package podscope

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler keeps the entries of the webhook of new pods, or of that of disruptions.
type Reconciler struct {
	client  client.Client
	options Options
	form    form
	sources []scope.Source
	metrics *meters
	// configurations are read from caches of one object each, by name, the objects of the sources from that of the
	// manager.
	configurations map[string]client.Reader
	objects        client.Reader

	manager    ctrl.Manager
	controller controller.Controller

	mu sync.Mutex // one worker is enough, but the options may ask for more
	// followed are the kinds of the sources that are watched.
	followed map[schema.GroupVersionKind]bool
	state    state
	reported string
}

// New returns a Reconciler of the entries of new pods. The client writes.
func New(c client.Client, o Options) (*Reconciler, error) {
	o = o.withDefaults()
	sources := scope.Sources(scope.SourceOptions{
		ReadinessGateForAll: o.ReadinessGateForAll,
		NoBudgets:           !o.budgets(),
		NoSpreads:           o.NoSpreads,
		EnhancedLiveness:    o.EnhancedLiveness,
		Serverless:          o.Serverless,
	})
	return newReconciler(&Reconciler{client: c, options: o, sources: sources, form: form{
		controller: "podscope-controller", webhook: webhookPods,
	}})
}

// NewDisruptions returns a Reconciler of the entries of disruptions, in the ValidatingWebhookConfiguration of the same
// name. It has no provisional entries.
func NewDisruptions(c client.Client, o Options) (*Reconciler, error) {
	o = o.withDefaults()
	o.InForce = nil
	o.MainConfiguration, o.Provisional, o.Off = o.ValidatingConfiguration, "", o.Off || !o.budgets() && o.NoSpreads
	return newReconciler(&Reconciler{
		client: c, options: o, sources: scope.DisruptionSources(o.NoSpreads),
		form: form{controller: "disruptionscope-controller", webhook: webhookDisruptions, disruptions: true},
	})
}

func newReconciler(r *Reconciler) (*Reconciler, error) {
	if r.client == nil {
		return nil, errors.New("podscope: a client is needed")
	}
	var err error
	if r.metrics, err = newMeters(r.options.Registerer, r.form.webhook); err != nil {
		return nil, fmt.Errorf("podscope: %w", err)
	}
	r.configurations = map[string]client.Reader{}
	r.followed = map[schema.GroupVersionKind]bool{}
	return r, nil
}

// RBAC cannot restrict the right to create by name. The policy kruise-manager-webhooks in config/rbac does, and
// restricts what entries send.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets;workloadspreads;podprobemarkers;persistentpodstates,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-pods-webhook-configuration;kruise-pods-provisional-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-mutating-webhook-configuration,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=kruise-pods-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=kruise-validating-webhook-configuration,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(r.form.controller)
	}
	r.objects, r.manager = mgr.GetCache(), mgr
	b := ctrl.NewControllerManagedBy(mgr).Named(r.form.controller).WithOptions(binding.ControllerOptions(o))
	for _, name := range r.names() {
		one, err := r.form.only(mgr, name)
		if err != nil {
			return err
		}
		r.configurations[name] = one
		b = b.WatchesRawSource(source.Kind(one, r.form.empty(), r.wake()))
	}
	// The first pass comes without an event, too.
	c, err := b.WatchesRawSource(source.Func(func(_ context.Context, q watches.Queue) error {
		q.Add(r.request())
		return nil
	})).Build(r)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	r.controller = c
	return nil
}

// only returns a cache of one configuration. It runs on the leader only, as the reconciler that alone reads it.
func (f form) only(mgr ctrl.Manager, name string) (cache.Cache, error) {
	one, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{f.empty(): {
			Field: fields.OneTermEqualSelector("metadata.name", name),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the configuration %s: %w", name, err)
	}
	if err := mgr.Add(one); err != nil {
		return nil, fmt.Errorf("add the cache of the configuration %s: %w", name, err)
	}
	return one, nil
}

// Reconcile writes the entries that the objects ask for.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look, err := r.follow()
	if err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := planner{r.options, r.form.disruptions}.next(o, r.state)
	r.state = next.state
	r.metrics.observe(next.want, next.notes)
	r.report(ctx, o.pods, next.notes)
	result, err := r.write(ctx, o, next)
	if err != nil {
		return ctrl.Result{}, err
	}
	result.RequeueAfter = passes.Sooner(passes.Sooner(result.RequeueAfter, look), r.inForce(next, o.now))
	return result, nil
}

// noticed is the time in which API servers notice a configuration that was written.
const noticed = time.Second

// inForce calls the option of its name, or returns when to look again.
func (r *Reconciler) inForce(p pass, now time.Time) time.Duration {
	if r.options.InForce == nil || !p.planned {
		return 0
	}
	if left := r.state.writes.last.Add(noticed).Sub(now); left > 0 {
		return min(left, noticed)
	}
	r.options.InForce()
	r.options.InForce = nil
	return 0
}

// write makes the write of a pass.
func (r *Reconciler) write(ctx context.Context, o snapshot, p pass) (ctrl.Result, error) {
	if p.write == nil {
		return ctrl.Result{RequeueAfter: p.requeueAfter}, nil
	}
	w, err := r.form.write(p.write)
	if err == nil {
		_, err = runtimeclient.Send(ctx, r.client, w)
	}
	switch {
	case apierrors.IsAlreadyExists(err), write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write configuration %s: %w", p.write.Object.GetName(), err)
	}
	r.state = p.written
	r.metrics.wrote(p)
	log.FromContext(ctx).Info("Wrote which pods are sent",
		"configuration", p.write.Object.GetName(), "entries", len(p.want))
	r.emit(ctx, o.pods, reasonUndone, p.announce)
	return ctrl.Result{RequeueAfter: p.requeueAfter}, nil
}

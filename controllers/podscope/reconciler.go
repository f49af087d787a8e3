package podscope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/scope"
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

	mu sync.Mutex // one worker is enough, but the options may ask for more
	// followed are the kinds of the sources that are watched.
	followed map[schema.GroupVersionKind]bool
	state    entries.State
	// bare is the window whose pods are still to be reported.
	bare     scope.Window
	reported string
	// wrote is when the last entries were written.
	wrote time.Time
}

// New returns a Reconciler of the entries of new pods. The client writes.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("podscope: a client is needed")
	}
	o = o.withDefaults()
	sources := scope.Sources(scope.SourceOptions{
		ReadinessGateForAll: o.ReadinessGateForAll,
		NoBudgets:           !o.budgets(),
		NoSpreads:           o.NoSpreads,
		EnhancedLiveness:    o.EnhancedLiveness,
		Serverless:          o.Serverless,
	})
	return newReconciler(&Reconciler{client: c, options: o, form: mutating(), sources: sources})
}

// NewDisruptions returns a Reconciler of the entries of disruptions, in the ValidatingWebhookConfiguration of the same
// name. It has no provisional entries.
func NewDisruptions(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("podscope: a client is needed")
	}
	o = o.withDefaults()
	o.InForce = nil
	o.MainConfiguration, o.Provisional, o.Off = o.ValidatingConfiguration, "", o.Off || !o.budgets() && o.NoSpreads
	return newReconciler(&Reconciler{
		client: c, options: o, form: validating(), sources: scope.DisruptionSources(o.NoSpreads),
	})
}

func newReconciler(r *Reconciler) (*Reconciler, error) {
	var err error
	if r.metrics, err = newMeters(r.options.Registerer, r.form.webhook); err != nil {
		return nil, fmt.Errorf("podscope: %w", err)
	}
	r.options.LookFor = cmp.Or(r.options.LookFor, lookFor)
	r.configurations, r.followed = map[string]client.Reader{}, map[schema.GroupVersionKind]bool{}
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
// +kubebuilder:rbac:groups="",resources=pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(r.form.controller)
	}
	r.objects = mgr.GetCache()
	b := ctrl.NewControllerManagedBy(mgr).Named(r.form.controller).WithOptions(binding.ControllerOptions(o))
	for _, name := range r.names() {
		one, err := r.form.only(mgr, name)
		if err != nil {
			return err
		}
		r.configurations[name] = one
		b = b.WatchesRawSource(source.Kind(one, r.form.empty(), r.wake()))
	}
	if r.options.InForce != nil { // also without any object, and so without an event
		b = b.WatchesRawSource(source.Func(func(
			_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request],
		) error {
			q.Add(r.request())
			return nil
		}))
	}
	c, err := b.Build(r)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	f := &follower{Reconciler: r, manager: mgr, controller: c, found: map[schema.GroupVersionKind]bool{}}
	for _, kind := range r.kinds() {
		is, err := binding.Installed(mgr.GetRESTMapper(), kind)
		switch {
		case err != nil:
			return err
		case is:
			err = f.watch(kind)
		default:
			f.missing = append(f.missing, kind)
		}
		if err != nil {
			return fmt.Errorf("follow kind %s: %w", kind.Kind, err)
		}
	}
	if err := mgr.Add(f); err != nil {
		return fmt.Errorf("add the follower of kinds: %w", err)
	}
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
	o, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	pass, err := entries.Next(o, r.state, entries.Policy{
		Configuration: r.options.Configuration,
		Client:        r.options.client(),
		Disruptions:   r.form.disruptions,
		Off:           r.options.Off,
		MostPause:     r.options.MostPause,
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.state = pass.State
	r.metrics.observe(&o)
	r.report(ctx, o.Pods, pass.Notes)
	if !pass.Window.Until.IsZero() {
		r.bare = pass.Window
	}
	result, err := r.write(ctx, o, pass)
	// Entries are written also while pods cannot be listed.
	if err = errors.Join(err, r.reportBare(ctx, o)); err != nil {
		return ctrl.Result{}, err
	}
	result.RequeueAfter = requeue.Sooner(result.RequeueAfter, r.inForce(pass, o.Now))
	return result, nil
}

// noticed is the time in which API servers notice a configuration that was written.
const noticed = time.Second

// inForce calls the option of its name, or returns when to look again.
func (r *Reconciler) inForce(pass entries.Pass, now time.Time) time.Duration {
	if r.options.InForce == nil || !pass.Planned {
		return 0
	}
	if left := r.wrote.Add(noticed).Sub(now); left > 0 {
		return min(left, noticed)
	}
	r.options.InForce()
	r.options.InForce = nil
	return 0
}

// write makes the write of a pass.
func (r *Reconciler) write(ctx context.Context, o entries.Observation, pass entries.Pass) (ctrl.Result, error) {
	if pass.Write == nil {
		return ctrl.Result{RequeueAfter: pass.RequeueAfter}, nil
	}
	w, err := r.form.write(pass.Write)
	if err == nil {
		_, err = runtimeclient.Send(ctx, r.client, w)
	}
	switch {
	case apierrors.IsAlreadyExists(err), write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write configuration %s: %w", pass.Write.Object.GetName(), err)
	}
	r.state = pass.Written
	if !pass.Planned {
		r.wrote = o.Now
	}
	r.metrics.wrote(pass.Write.Object.GetName() == r.options.Provisional)
	log.FromContext(ctx).Info("Wrote which pods are sent",
		"configuration", pass.Write.Object.GetName(), "entries", len(o.Want.Entries))
	r.announce(ctx, o.Pods, pass.Announce)
	return ctrl.Result{RequeueAfter: pass.RequeueAfter}, nil
}

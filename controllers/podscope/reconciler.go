package podscope

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/stored"
)

const (
	controllerName = "podscope-controller"

	// awaitCA is the pause until the main configuration is looked at again.
	awaitCA = time.Second
	// catchUp is what the cache gets to show what somebody else has written.
	catchUp = 200 * time.Millisecond

	reasonUndone  = "PodScopeUndone"
	reasonWidened = "PodScopeNote"
)

// Reconciler keeps the entries of the pod webhook.
type Reconciler struct {
	client  client.Client
	options Options
	// configuration is read from a cache of that one object, sets from that of the manager.
	configuration, sets client.Reader

	mu    sync.Mutex // one worker is all there is use for, but nobody is kept from having two
	pace  pace
	ahead ahead
	// sweeps are the removals of entries that were written ahead, which bring nothing new to what is wanted.
	sweeps pace
	noted  string
}

// New makes a Reconciler. The client writes.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("podscope: a client is needed")
	}
	o = o.withDefaults()
	return &Reconciler{client: c, options: o, pace: pace{least: between, most: o.MostPause}, sweeps: pace{least: betweenSweeps, most: o.MostPause}}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-pods-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-mutating-webhook-configuration,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	one, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&admissionregistrationv1.MutatingWebhookConfiguration{}: {
			Field: fields.OneTermEqualSelector("metadata.name", r.options.Configuration),
		}},
	})
	if err != nil {
		return fmt.Errorf("make a cache of the configuration: %w", err)
	}
	if err := mgr.Add(one); err != nil { // on the leader only, as the reconciler that alone reads it
		return fmt.Errorf("add the cache of the configuration: %w", err)
	}
	r.configuration, r.sets = one, mgr.GetCache()
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true) // two managers in one process may both have pods
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(source.Kind[client.Object](one, &admissionregistrationv1.MutatingWebhookConfiguration{}, r.wake())).
		WithOptions(o)
	_, err = mgr.GetRESTMapper().RESTMapping(scope.Kind().GroupKind(), scope.Kind().Version)
	switch {
	case meta.IsNoMatchError(err):
		mgr.GetLogger().Info("SidecarSets are not installed", "controller", controllerName)
		r.sets = nil
	case err != nil:
		return fmt.Errorf("look up SidecarSets: %w", err)
	default:
		b = b.Watches(stored.Untyped(scope.Kind()), r.wake(), builder.WithPredicates(setEvents()))
	}
	return b.Complete(r)
}

// wake has the one configuration looked at.
func (r *Reconciler) wake() handler.EventHandler {
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: r.options.Configuration}}
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
}

// Reconcile brings the entries in line with what is there.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.configuration.Get(ctx, types.NamespacedName{Name: r.options.Configuration}, have); err != nil {
		if apierrors.IsNotFound(err) {
			log.FromContext(ctx).Info("Pods are not sent: there is no configuration", "configuration", r.options.Configuration)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read configuration: %w", err)
	}
	want, sets, err := r.want(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.tell(ctx, have, append(want.Notes, edited(have, want.Entries)...))
	p, err := makePlan(have, want.Entries)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.options.Now()
	r.ahead.observe(have, sets, now)
	if len(p.patch) > 0 {
		if wait := r.pace.wait(p.wanted, now); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		return r.write(ctx, have, want.Entries)
	}
	r.ahead.covered(now)
	over, next := r.ahead.over(r.options.Off, now)
	if len(over) == 0 {
		return ctrl.Result{RequeueAfter: next}, nil
	}
	if wait := r.sweeps.wait(r.ahead.sweep(over), now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return r.sweep(ctx, have, want.Entries, over)
}

// tell says once where the scope is not what the sets say.
func (r *Reconciler) tell(ctx context.Context, about *admissionregistrationv1.MutatingWebhookConfiguration, notes []scope.Note) {
	said := fmt.Sprint(notes)
	if said == r.noted {
		return
	}
	r.noted = said
	for _, n := range notes {
		log.FromContext(ctx).Info("Pods are sent otherwise than the sets say", "reason", n.Code, "object", n.Object, "note", n.Text)
		if r.options.Recorder != nil {
			r.options.Recorder.Event(about, corev1.EventTypeWarning, reasonWidened, fmt.Sprintf("%s: %s", n.Object, n.Text))
		}
	}
}

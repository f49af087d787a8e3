package podscope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"github.com/kruisekit/kruisekit/note"
)

const (
	controllerName = "podscope-controller"

	// awaitCA is the pause until the main configuration is read again.
	awaitCA = time.Second
	// catchUp is the time for the cache to show what another writer has written.
	catchUp = 200 * time.Millisecond

	reasonUndone  = "PodScopeUndone"
	reasonWidened = "PodScopeNote"
)

// Reconciler keeps the entries of the pod webhook.
type Reconciler struct {
	client  client.Client
	options Options
	sources []scope.Source
	// kinds of the sources that are installed.
	kinds []schema.GroupVersionKind
	// configuration is read from a cache of that one object, the objects of the sources from that of the manager.
	configuration, objects client.Reader

	mu          sync.Mutex // one worker is enough, but the options may ask for more
	pace        pace
	provisional provisional
	// sweeps are the removals of provisional entries, which change nothing of what is wanted.
	sweeps pace
	noted  string
}

// New returns a Reconciler. The client writes.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("podscope: a client is needed")
	}
	o = o.withDefaults()
	return &Reconciler{
		client: c, options: o, sources: scope.Sources(scope.SourceOptions{ReadinessGateForAll: o.ReadinessGateForAll}),
		pace: pace{least: between, most: o.MostPause}, sweeps: pace{least: betweenSweeps, most: o.MostPause},
	}, nil
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
	r.configuration, r.objects = one, mgr.GetCache()
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true) // two managers in one process may both have pods
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(source.Kind[client.Object](one, &admissionregistrationv1.MutatingWebhookConfiguration{}, r.wake())).
		WithOptions(o)
	if r.kinds, err = r.installed(mgr); err != nil {
		return err
	}
	for _, kind := range r.kinds {
		b = b.Watches(stored.Untyped(kind), r.wake(), builder.WithPredicates(specEvents()))
	}
	return b.Complete(r)
}

// installed returns the kinds of the sources that the API server serves.
func (r *Reconciler) installed(mgr ctrl.Manager) ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	for i := range r.sources {
		kind := r.sources[i].Kind
		if kind.Empty() || slices.Contains(kinds, kind) {
			continue
		}
		_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			mgr.GetLogger().Info("Skipped kind that is not installed", "controller", controllerName, "kind", kind.Kind)
		case err != nil:
			return nil, fmt.Errorf("look up kind %s: %w", kind.Kind, err)
		default:
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// wake enqueues the configuration.
func (r *Reconciler) wake() handler.EventHandler {
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: r.options.Configuration}}
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
}

// Reconcile writes the entries that the objects ask for.
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
	r.report(ctx, have, append(want.Notes, edited(have, want.Entries)...))
	p, err := makePlan(have, want.Entries)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.options.Now()
	r.provisional.observe(have, sets, now)
	if len(p.patch) > 0 {
		if wait := r.pace.wait(p.wanted, now); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		return r.write(ctx, have, want.Entries)
	}
	r.provisional.covered(now)
	over, next := r.provisional.over(r.options.Off, now)
	if len(over) == 0 {
		return ctrl.Result{RequeueAfter: next}, nil
	}
	if wait := r.sweeps.wait(r.provisional.sweep(over), now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return r.sweep(ctx, have, want.Entries, over)
}

// report emits the notes once.
func (r *Reconciler) report(ctx context.Context, about *admissionregistrationv1.MutatingWebhookConfiguration, notes []note.Note) {
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

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
	noted string
}

// New makes a Reconciler. The client writes.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("podscope: a client is needed")
	}
	o = o.withDefaults()
	return &Reconciler{client: c, options: o, pace: pace{most: o.MostPause}}, nil
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
	if err := mgr.Add(one); err != nil {
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
	want, err := r.want(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.tell(ctx, have, want.Notes)
	p, err := makePlan(have, want.Entries)
	if err != nil || len(p.patch) == 0 {
		return ctrl.Result{}, err
	}
	now := r.options.Now()
	undone := r.pace.undone(p.wanted)
	if wait := r.pace.wait(p.wanted, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return r.write(ctx, have, p, undone)
}

func (r *Reconciler) write(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration, p plan, undone bool) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	if len(p.added) > 0 && r.options.URL == "" {
		ca, err := r.authority(ctx, have)
		if err != nil {
			return ctrl.Result{}, err
		}
		if len(ca) == 0 {
			logger.Info("Pods are not sent yet: there is no CA for the service in any configuration", "service", r.options.Service)
			return ctrl.Result{RequeueAfter: awaitCA}, nil
		}
		p.trust(ca)
	}
	patch, err := p.encode()
	if err != nil {
		return ctrl.Result{}, err
	}
	target := &admissionregistrationv1.MutatingWebhookConfiguration{}
	target.Name = have.Name
	switch err := r.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil // its event is on the way
	case outdated(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write configuration: %w", err)
	}
	r.pace.wrote(p.wanted, r.options.Now())
	logger.Info("Wrote which pods are sent", "configuration", have.Name, "entries", len(p.recorded), "undone", undone)
	if undone && r.options.Recorder != nil {
		r.options.Recorder.Event(have, corev1.EventTypeWarning, reasonUndone,
			"somebody else has taken away entries of the pod webhook; they are written again, after pauses that get longer")
	}
	return ctrl.Result{}, nil
}

// outdated says that the configuration is another one than was looked at. A patch that the API server does not like for what it
// says comes with causes.
func outdated(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsConflict(err) {
		return true
	}
	return apierrors.IsInvalid(err) && errors.As(err, &status) && (status.Status().Details == nil || len(status.Status().Details.Causes) == 0)
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

// Package process puts the manager together: controllers on the leader, webhooks on every replica, a certificate for
// them, and the endpoints by which a cluster sees how it is.
package process

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/controllers/resourcedistribution"
	"github.com/kruisekit/kruisekit/controllers/workloadspread"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/examples/reference/patience"
	"github.com/kruisekit/kruisekit/webhooks"
	"github.com/kruisekit/kruisekit/webhooks/certificates"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

const (
	// UserAgent is what the API server logs, and whose fields it says they are.
	UserAgent = "kruise-manager"
	// drain is what requests and reconciles get to end. It is less than the pod gets.
	drain = 20 * time.Second

	mutatingConfiguration   = "kruise-mutating-webhook-configuration"
	validatingConfiguration = "kruise-validating-webhook-configuration"
	podsConfiguration       = "kruise-pods-webhook-configuration" // one of each kind
	newSetsConfiguration    = "kruise-pods-provisional-webhook-configuration"
)

// New makes a manager that is ready to start, with the same context.
func New(ctx context.Context, rc *rest.Config, o options.Options) (ctrl.Manager, error) {
	rc = client(rc, o)
	keeper, err := certificates.New(rc,
		types.NamespacedName{Namespace: o.Webhook.Namespace, Name: o.Webhook.Service}, certificateOptions(o))
	if err != nil {
		return nil, err
	}
	mo, err := managerOptions(o)
	if err != nil {
		return nil, err
	}
	mo.NewCache = patience.Until(ctx.Done(), mo.NewCache)
	server, err := webhookServer(o, keeper.TLS)
	if err != nil {
		return nil, err
	}
	mo.WebhookServer = keeper.With(server)
	mgr, err := newManager(ctx, rc, mo, o)
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	mgr = explained{mgr, log.FromContext(ctx)}
	if err := mgr.AddReadyzCheck("webhook-ready", keeper.Ready); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	if err := mgr.Add(&leadership{elected: mgr.Elected()}); err != nil {
		return nil, fmt.Errorf("add metrics: %w", err)
	}
	if err := o.Release.Register("kruise_manager_build_info", metrics.Registry); err != nil {
		return nil, err
	}
	recorder := mgr.GetEventRecorderFor(UserAgent)
	if err := mgr.Add(&unserved{reader: mgr.GetAPIReader(), recorder: recorder, options: o}); err != nil {
		return nil, fmt.Errorf("add check of gates: %w", err)
	}
	if err := mgr.Add(&reserved{
		reader: mgr.GetAPIReader(), recorder: recorder, namespace: o.Cache.Namespace,
	}); err != nil {
		return nil, fmt.Errorf("add check of namespaces: %w", err)
	}
	return mgr, addAll(ctx, mgr, keeper, o)
}

// certificateOptions are the options for the keeper of the certificate.
func certificateOptions(o options.Options) certificates.Options {
	return certificates.Options{
		Secret: o.Webhook.Secret, Targets: targets(), External: o.Gates.On(gates.EnableExternalCerts),
		RenewBefore: o.Webhook.RenewBefore, StartTimeout: o.Webhook.StartTimeout,
	}
}

// addAll adds webhooks and controllers.
func addAll(ctx context.Context, mgr ctrl.Manager, keeper *certificates.Keeper, o options.Options) error {
	resize, err := resizingOf(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	refusals, err := newAudit(ctx, o.Protection)
	if err != nil {
		return err
	}
	admitted := admission(o.Gates)
	admitted.SidecarSet.Namespace, admitted.Pod.Sidecars.Namespace = o.Webhook.Namespace, o.Webhook.Namespace
	admitted.PersistentPodState.Namespace, admitted.ResourceDistribution.Namespace = o.Webhook.Namespace,
		o.Webhook.Namespace
	admitted.Reach.Service = o.Webhook.Service
	admitted.Holds = holds(o)
	admitted.ColdStart = keeper.ColdStart
	admitted.Deletion = guarded(admitted.Deletion, o.Protection, refusals)
	admitted.Allocator.Versioned, admitted.Allocator.Namespace = o.VersionedSpreads, o.Webhook.Namespace
	if admitted.Budgets, err = guard(mgr, o, resize, refusals); err != nil {
		return err
	}
	if err := webhooks.AddToManager(mgr, admitted); err != nil {
		return err
	}
	return addControllers(ctx, mgr, o, found{resize, admitted.Budgets, keeper.ColdStart})
}

// found is what controllers share with webhooks.
type found struct {
	resizing resizing
	// guard is nil where no gate reviews disruptions.
	guard *disruption.Guard
	// coldStart wraps checks that caches hold up.
	coldStart func(healthz.Checker) healthz.Checker
}

func addControllers(ctx context.Context, mgr ctrl.Manager, o options.Options, f found) error {
	logger := log.FromContext(ctx)
	logger.Info("Options", "featureGates", o.Gates.String(), "controllers", o.Controllers, "resizes",
		f.resizing.served)
	if idle := withoutEffect(o.Gates); len(idle) > 0 {
		logger.Info("Feature gates have no effect", "featureGates", idle)
	}
	co := reconcilers(o, f.resizing)
	if o.Gates.On(gates.PodUnavailableBudgetUpdateGate) {
		co.CloneSet.Ask, co.DaemonSet.Ask, co.StatefulSet.Ask = f.guard.Ask, f.guard.Ask, f.guard.Ask
		co.Native.Ask = f.guard.Ask
	}
	co.LeftOut = &controllers.LeftOut{}
	if err := mgr.AddReadyzCheck("controllers", f.coldStart(co.LeftOut.Check)); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	return controllers.AddToManager(ctx, mgr, co)
}

// reconcilers are the options for all reconcilers, as far as flags and gates decide about them.
func reconcilers(o options.Options, r resizing) controllers.Options {
	in := installed(o.Gates, r)
	co := controllers.Options{
		Names:                chosen(o),
		Controller:           controllerOptions(o),
		Registerer:           metrics.Registry,
		CloneSet:             cloneSets(o.Gates, in),
		BroadcastJob:         broadcastJobs(o),
		ImagePullJob:         pullJobs(o),
		Native:               natives(o, in, r.served),
		NodeImage:            nodeImages(o),
		PodScope:             podScope(o),
		SidecarSet:           sidecarSets(o),
		DaemonSet:            daemonSets(o, in),
		PodUnavailableBudget: podUnavailableBudgets(o.Gates, r),
		StatefulSet:          statefulSets(o, in),
		NodePodProbe:         nodePodProbes(),
		PodProbeMarker:       podProbeMarkers(o.Gates),
		PersistentPodState:   podStates(o),
		ResourceDistribution: resourcedistribution.Options{Namespace: o.Webhook.Namespace},
		WorkloadSpread:       workloadspread.Options{Versioned: o.VersionedSpreads, Namespace: o.Webhook.Namespace},
	}
	co.CloneSet.ExcludePreparingDelete = o.ExcludePreparingDelete
	return co
}

// client is how the process appears to the API server.
func client(rc *rest.Config, o options.Options) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.UserAgent = UserAgent
	if o.Release.Version != "" {
		rc.UserAgent = o.Release.UserAgent()
	}
	rc.QPS, rc.Burst = -1, 0
	if o.QPS > 0 {
		rc.QPS, rc.Burst = float32(o.QPS), max(1, o.Burst)
	}
	return rc
}

func managerOptions(o options.Options) (ctrl.Options, error) {
	mo, err := controllers.ManagerOptions()
	if err != nil {
		return mo, err
	}
	mo.Cache.SyncPeriod = o.Cache.Resync
	if o.Cache.Namespace != "" {
		mo.Cache.DefaultNamespaces = map[string]cache.Config{o.Cache.Namespace: {}}
		// Wherever pods are, the history of SidecarSets is where the manager is.
		mo.Cache.ByObject[&appsv1.ControllerRevision{}] = cache.ByObject{Namespaces: map[string]cache.Config{
			o.Cache.Namespace: {}, o.Webhook.Namespace: {},
		}}
	}
	mo.PprofBindAddress = o.PprofAddress
	mo.LeaderElection = o.Election.Enabled
	mo.LeaderElectionNamespace = o.Election.Namespace
	mo.LeaderElectionID = o.Election.ID
	mo.LeaseDuration, mo.RenewDeadline, mo.RetryPeriod = &o.Election.LeaseDuration, &o.Election.RenewDeadline,
		&o.Election.RetryPeriod
	mo.LeaderElectionReleaseOnCancel = true // main ends with the manager
	mo.GracefulShutdownTimeout = ptr.To(drain)
	mo.Controller.CacheSyncTimeout = o.Cache.SyncTimeout
	return mo, nil
}

// targets are all that names the service of the webhooks.
func targets() []certificates.Target {
	all := []certificates.Target{
		certificates.Mutating(mutatingConfiguration), certificates.Validating(validatingConfiguration),
		certificates.Mutating(podsConfiguration), certificates.Validating(podsConfiguration),
		certificates.Mutating(newSetsConfiguration),
	}
	for _, crd := range webhooks.Conversions() {
		all = append(all, certificates.Conversion(crd))
	}
	return all
}

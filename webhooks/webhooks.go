package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/scope/provisional"
	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
	"github.com/kruisekit/kruisekit/webhooks/persistentpodstate"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

// Options of AddToManager. The zero value adds all webhooks as the reference has them.
type Options struct {
	// AdvancedCronJob is for the webhooks of AdvancedCronJobs.
	AdvancedCronJob advancedcronjob.Options
	// BroadcastJob is for the webhooks of BroadcastJobs.
	BroadcastJob broadcastjob.Options
	// CloneSet is for the webhooks of CloneSets.
	CloneSet cloneset.Options
	// DaemonSet is for the webhooks of DaemonSets.
	DaemonSet daemonset.Options
	// EphemeralJob is for the webhook of EphemeralJobs.
	EphemeralJob ephemeraljob.Options
	// StatefulSet is for the webhooks of StatefulSets.
	StatefulSet statefulset.Options
	// UnitedDeployment is for the webhooks of UnitedDeployments.
	UnitedDeployment uniteddeployment.Options
	// Deletion is for those that refuse deletions of protected objects. They also judge deletions of CloneSets, StatefulSets and
	// UnitedDeployments.
	Deletion deletion.Options
	// ImagePull is for those of ImagePullJobs, ImageListPullJobs and NodeImages.
	ImagePull imagepull.Options
	// ContainerRecreateRequest is for that of ContainerRecreateRequests.
	ContainerRecreateRequest containerrecreaterequest.Options
	// PersistentPodState is for that of PersistentPodStates.
	PersistentPodState persistentpodstate.Options
	// Pod is for that of new pods.
	Pod pod.Options
	// NoPods leaves those of new pods and of disruptions out. Budgets are rejected then.
	NoPods bool
	// Disruption is for that of deletions, evictions and updates of pods.
	Disruption disruption.Options
	// Budgets decides about disruptions. Nil makes one, which the reconcilers of workloads then do not share.
	Budgets *disruption.Guard
	// NoSpreads leaves pods without the subsets of WorkloadSpreads.
	NoSpreads bool
	// Desk is for what gives pods their subsets.
	Desk workloadspread.DeskOptions
	// Spreads gives pods their subsets. Nil makes one.
	Spreads *workloadspread.Desk
	// PodProbeMarker is for that of PodProbeMarkers.
	PodProbeMarker podprobemarker.Options
	// ResourceDistribution is for that of ResourceDistributions.
	ResourceDistribution resourcedistribution.Options
	// SidecarSet is for those of SidecarSets. Where it does not say how sets are covered, they are in the configuration that
	// controllers/podscope keeps.
	SidecarSet sidecarset.Options
	// Reach is how API servers reach the webhook of new pods. It must be that of controllers/podscope.
	Reach Reach
	// CoverTimeout is how long a set waits at most to be covered. Default 1 second.
	CoverTimeout time.Duration

	// guard is made of Deletion.
	guard *deletion.Guard
}

// unguarded reports whether no disruption is reviewed.
func (o *Options) unguarded() bool {
	return o.NoPods || o.Disruption.NoDeletes && !o.Disruption.Updates
}

// Reach is how API servers reach the webhook of new pods. It must be the same as in the options of controllers/podscope.
type Reach struct {
	// Service is its name, in the namespace of the options of the pod webhook. Default kruise-webhook-service.
	Service string
	// URL is for API servers that use no service, and CABundle the CA there.
	URL      string
	CABundle []byte
}

// The names of the generated configurations:
//
// +kubebuilder:webhookconfiguration:mutating=true,name=kruise-mutating-webhook-configuration
// +kubebuilder:webhookconfiguration:mutating=false,name=kruise-validating-webhook-configuration

// list has all webhooks. To add one, add its options to Options and a line here.
func list() []entry {
	return []entry{
		{"conversion", addConversion},
		{"broadcastjob", addBroadcastJob},
		{"advancedcronjob", addAdvancedCronJob},
		{"cloneset", addCloneSet},
		{"daemonset", addDaemonSet},
		{"ephemeraljob", addEphemeralJob},
		{"statefulset", addStatefulSet},
		{"deletion", addDeletion},
		{"imagepull", addImagePull},
		{"containerrecreaterequest", addContainerRecreateRequest},
		{"persistentpodstate", addPersistentPodState},
		{"pod", addPod},
		{"disruption", addDisruption},
		{"podprobemarker", addPodProbeMarker},
		{"podunavailablebudget", addBudget},
		{"resourcedistribution", addResourceDistribution},
		{"sidecarset", addSidecarSet},
		{"uniteddeployment", addUnitedDeployment},
		{"workloadspread", addWorkloadSpread},
	}
}

// entry is a webhook in the list.
type entry struct {
	name string
	add  func(mgr ctrl.Manager, o Options) error
}

// AddToManager adds all webhooks. It must come before the manager starts.
func AddToManager(mgr ctrl.Manager, o Options) error {
	if err := o.complete(mgr); err != nil {
		return err
	}
	for _, e := range list() {
		if err := e.add(mgr, o); err != nil {
			return fmt.Errorf("add webhook %s: %w", e.name, err)
		}
	}
	return nil
}

// complete makes what several webhooks share.
func (o *Options) complete(mgr ctrl.Manager) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	o.Deletion.ServedElsewhere = append(slices.Clone(o.Deletion.ServedElsewhere), cloneset.ValidatePath, statefulset.ValidatePath, uniteddeployment.ValidatePath)
	if o.guard, err = deletion.New(c, o.Deletion); err != nil {
		return err
	}
	if o.CloneSet.Delete == nil {
		o.CloneSet.Delete = o.guard.Handle
	}
	if o.StatefulSet.Delete == nil {
		o.StatefulSet.Delete = o.guard.Handle
	}
	if o.UnitedDeployment.Delete == nil {
		o.UnitedDeployment.Delete = o.guard.Handle
	}
	if err := o.spread(mgr); err != nil {
		return err
	}
	if o.unguarded() {
		return nil
	}
	if o.Budgets == nil {
		if o.Budgets, err = disruption.NewGuard(mgr, disruption.GuardOptions{}); err != nil {
			return err
		}
	}
	if o.Pod.Budgets == nil {
		o.Pod.Budgets = o.Budgets
	}
	return nil
}

// spread makes what gives pods their subsets, and what the webhooks of pods ask of it.
func (o *Options) spread(mgr ctrl.Manager) (err error) {
	if o.NoPods || o.NoSpreads {
		o.Spreads = nil
		return nil
	}
	if o.Spreads == nil {
		if o.Spreads, err = workloadspread.NewDesk(mgr, o.Desk); err != nil {
			return err
		}
	}
	if o.Pod.Spreads == nil {
		o.Pod.Spreads = o.Spreads
	}
	if o.Disruption.Spreads == nil {
		o.Disruption.Spreads = o.Spreads
	}
	return nil
}

func addDeletion(mgr ctrl.Manager, o Options) error {
	return o.guard.SetupWithManager(mgr)
}

func addConversion(mgr ctrl.Manager, _ Options) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	return nil
}

func addBroadcastJob(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := broadcastjob.New(c, o.BroadcastJob)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addAdvancedCronJob(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := advancedcronjob.New(c, o.AdvancedCronJob)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addCloneSet(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := cloneset.New(c, o.CloneSet)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addStatefulSet(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := statefulset.New(c, o.StatefulSet)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addUnitedDeployment(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := uniteddeployment.New(c, o.UnitedDeployment)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addDaemonSet(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := daemonset.New(c, o.DaemonSet)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addEphemeralJob(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := ephemeraljob.New(c, o.EphemeralJob)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addImagePull(mgr ctrl.Manager, o Options) error {
	return imagepull.New(o.ImagePull).SetupWithManager(mgr)
}

func addContainerRecreateRequest(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := containerrecreaterequest.New(c, o.ContainerRecreateRequest)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addResourceDistribution(mgr ctrl.Manager, o Options) error {
	return resourcedistribution.New(o.ResourceDistribution).SetupWithManager(mgr)
}

func addPersistentPodState(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := persistentpodstate.New(c, o.PersistentPodState)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addPodProbeMarker(mgr ctrl.Manager, o Options) error {
	return podprobemarker.New(o.PodProbeMarker).SetupWithManager(mgr)
}

func addPod(mgr ctrl.Manager, o Options) error {
	if o.NoPods {
		return nil
	}
	steps, err := pod.FromManager(mgr, o.Pod)
	if err != nil {
		return err
	}
	w, err := pod.New(steps, o.Pod)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addDisruption(mgr ctrl.Manager, o Options) error {
	if o.unguarded() && o.Disruption.Spreads == nil {
		return nil
	}
	w, err := disruption.New(o.Budgets, mgr.GetAPIReader(), o.Disruption)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addBudget(mgr ctrl.Manager, o Options) error {
	options := podunavailablebudget.Options{Off: o.unguarded()}
	w, err := podunavailablebudget.New(o.Budgets, options)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-pods-provisional-webhook-configuration,verbs=get;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-mutating-webhook-configuration,verbs=get

func addSidecarSet(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	switch {
	case o.SidecarSet.Cover != nil:
	case o.NoPods:
		o.SidecarSet.Cover = func(context.Context, *appsv1beta1.SidecarSet) error { return errors.New("the webhook of pods is off") }
	default:
		w, err := provisional.New(c, provisional.Options{Timeout: o.CoverTimeout, Reach: scope.Reach{
			Namespace: o.Pod.Sidecars.Namespace, Service: o.Reach.Service, URL: o.Reach.URL, CABundle: o.Reach.CABundle,
		}})
		if err != nil {
			return err
		}
		o.SidecarSet.Cover = w.Cover
	}
	w, err := sidecarset.New(c, mgr.GetCache(), o.SidecarSet)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addWorkloadSpread(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := workloadspread.New(o.Spreads, c, workloadspread.Options{Off: o.Spreads == nil})
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

// live returns a client without a cache, which would start a watch of every kind that is read.
func live(mgr ctrl.Manager) (client.Client, error) {
	c, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

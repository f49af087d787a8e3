package webhooks

import (
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/native"
	"github.com/kruisekit/kruisekit/webhooks/persistentpodstate"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

// Options of AddToManager. The zero value adds all webhooks as the reference has them.
type Options struct {
	// AdvancedCronJob is for the webhooks of AdvancedCronJobs.
	AdvancedCronJob kinds.Options
	// BroadcastJob is for the webhooks of BroadcastJobs.
	BroadcastJob kinds.Options
	// CloneSet is for the webhooks of CloneSets.
	CloneSet kinds.Options
	// DaemonSet is for the webhooks of DaemonSets.
	DaemonSet kinds.Options
	// EphemeralJob is for the webhook of EphemeralJobs.
	EphemeralJob kinds.Options
	// StatefulSet is for the webhooks of StatefulSets.
	StatefulSet statefulset.Options
	// UnitedDeployment is for the webhooks of UnitedDeployments.
	UnitedDeployment kinds.Options
	// Deletion is for those that refuse deletions of protected objects. They also judge deletions of CloneSets,
	// StatefulSets and UnitedDeployments.
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
	// Allocator has the options of Spreads, where Spreads is nil.
	Allocator workloadspread.AllocatorOptions
	// Spreads gives pods their subsets. Nil makes one.
	Spreads *workloadspread.Allocator
	// Holds adds that which holds Deployments for controllers/native, whose Options.Deployments must then be true.
	Holds bool
	// PodProbeMarker is for that of PodProbeMarkers.
	PodProbeMarker podprobemarker.Options
	// ResourceDistribution is for that of ResourceDistributions.
	ResourceDistribution resourcedistribution.Options
	// SidecarSet is for those of SidecarSets. Where it does not say how sets are covered, they are in the configuration
	// that controllers/podscope keeps.
	SidecarSet sidecarset.Options
	// Reach is how API servers reach the webhook of new pods. It must be that of controllers/podscope.
	Reach Reach
	// ColdStart wraps the readiness checks of caches: certificates.Keeper.ColdStart. Nil leaves the checks as they are,
	// which fits where API servers need no conversion webhook to read stored objects.
	ColdStart func(check healthz.Checker) healthz.Checker
	// CoverTimeout is how long a set waits at most to be covered. Default 1 second.
	CoverTimeout time.Duration

	// guard is made of Deletion.
	guard *deletion.Guard
}

// unguarded reports whether no disruption is reviewed.
func (o *Options) unguarded() bool {
	return o.NoPods || o.Disruption.NoDeletes && !o.Disruption.Updates
}

// Reach is how API servers reach the webhook of new pods. It must be the same as in the options of
// controllers/podscope.
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
		{"broadcastjob", func(b base) error { return b.serve(broadcastjob.New(b.live, b.BroadcastJob)) }},
		{"advancedcronjob", func(b base) error { return b.serve(advancedcronjob.New(b.live, b.AdvancedCronJob)) }},
		{"cloneset", func(b base) error { return b.serve(cloneset.New(b.live, b.CloneSet)) }},
		{"daemonset", func(b base) error { return b.serve(daemonset.New(b.live, b.DaemonSet)) }},
		{"ephemeraljob", func(b base) error { return b.serve(ephemeraljob.New(b.live, b.EphemeralJob)) }},
		{"statefulset", func(b base) error { return b.serve(statefulset.New(b.live, b.StatefulSet)) }},
		{"deletion", func(b base) error { return b.guard.SetupWithManager(b.mgr) }},
		{"native", func(b base) error {
			if !b.Holds {
				return nil
			}
			return native.SetupWithManager(b.mgr)
		}},
		{"imagepull", func(b base) error { return b.serve(imagepull.New(b.ImagePull)) }},
		{"containerrecreaterequest", func(b base) error {
			return b.serve(containerrecreaterequest.New(b.live, b.ContainerRecreateRequest))
		}},
		{"persistentpodstate", func(b base) error { return b.serve(persistentpodstate.New(b.live, b.PersistentPodState)) }},
		{"pod", addPod},
		{"disruption", addDisruption},
		{"podprobemarker", func(b base) error { return b.serve(podprobemarker.New(b.PodProbeMarker)) }},
		{"podunavailablebudget", addBudget},
		{"resourcedistribution", func(b base) error { return b.serve(resourcedistribution.New(b.ResourceDistribution)) }},
		{"sidecarset", addSidecarSet},
		{"uniteddeployment", func(b base) error { return b.serve(uniteddeployment.New(b.live, b.UnitedDeployment)) }},
		{"workloadspread", addWorkloadSpread},
	}
}

// AddToManager adds all webhooks. It must come before the manager starts.
func AddToManager(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	if err := o.complete(mgr, c); err != nil {
		return err
	}
	if o.ColdStart != nil {
		mgr = coldManager{mgr, o.ColdStart}
	}
	b := base{Options: o, mgr: mgr, live: c}
	for _, e := range list() {
		if err := e.add(b); err != nil {
			return fmt.Errorf("add webhook %s: %w", e.name, err)
		}
	}
	return nil
}

// complete makes what several webhooks share.
func (o *Options) complete(mgr ctrl.Manager, api client.Reader) (err error) {
	o.Deletion.ServedElsewhere = append(slices.Clone(o.Deletion.ServedElsewhere),
		cloneset.ValidatePath, statefulset.ValidatePath, uniteddeployment.ValidatePath)
	if o.guard, err = deletion.New(api, o.Deletion); err != nil {
		return err
	}
	for _, of := range []*kinds.Options{&o.CloneSet, &o.StatefulSet.Options, &o.UnitedDeployment} {
		if of.Delete == nil {
			of.Delete = o.guard.Handle
		}
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
		if o.Spreads, err = workloadspread.NewAllocator(mgr, o.Allocator); err != nil {
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

package process

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/controllers/persistentpodstate"
	"github.com/kruisekit/kruisekit/controllers/podprobemarker"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/controllers/podunavailablebudget"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/webhooks"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	probes "github.com/kruisekit/kruisekit/webhooks/podprobemarker"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
	sets "github.com/kruisekit/kruisekit/webhooks/sidecarset"
	statefulsets "github.com/kruisekit/kruisekit/webhooks/statefulset"
)

// inert has the gates that change nothing in the manager, and why.
func inert() map[gates.Gate]string {
	return map[gates.Gate]string{
		gates.DaemonSetPruneIneligibleNodes:     "pods on nodes that are not eligible never count",
		gates.DaemonWatchingPod:                 "the daemon reads it",
		gates.ForceDeleteTimeoutExpectationGate: "a lost expectation heals by a read within minutes",
	}
}

// needs are the gates that must be on for a controller to run.
func needs() map[string][]gates.Gate {
	return map[string][]gates.Gate{
		"containerrecreaterequest": {gates.KruiseDaemon},
		"imagelistpulljob":         {gates.KruiseDaemon, gates.ImagePullJobGate},
		"imagepulljob":             {gates.KruiseDaemon, gates.ImagePullJobGate},
		"nodeimage":                {gates.KruiseDaemon},
		"nodepodprobe":             {gates.KruiseDaemon, gates.PodProbeMarkerGate},
		"podprobemarker":           {gates.PodProbeMarkerGate},
		"resourcedistribution":     {gates.ResourceDistributionGate},
		"sidecarterminator":        {gates.KruiseDaemon, gates.SidecarTerminator},
		"workloadspread":           {gates.WorkloadSpread},
	}
}

// chosen are the controllers that the command line asks for, without those that lack a gate.
func chosen(o options.Options) []string {
	names := slices.Clone(o.Controllers)
	if len(names) == 0 {
		names = []string{"*"} // what empty means, before something is left out of it
	}
	switch on := o.Gates.On(gates.NativeRollouts); { // which the reference does not have
	case on && slices.Contains(names, "*"):
		names = append(names, "native")
	case !on && slices.Contains(names, "native"):
		names = append(names, "-native")
	}
	for _, name := range slices.Sorted(maps.Keys(needs())) {
		if slices.ContainsFunc(needs()[name], func(g gates.Gate) bool { return !o.Gates.On(g) }) {
			names = append(names, "-"+name)
		}
	}
	if !o.Gates.On(gates.PodUnavailableBudgetDeleteGate) && !o.Gates.On(gates.PodUnavailableBudgetUpdateGate) {
		names = append(names, "-podunavailablebudget")
	}
	return names
}

// installed is what in-place updates find in the cluster. All workloads get the same value.
func installed(g gates.Gates, r resizing) *inplace.Installation {
	return &inplace.Installation{
		EnvDaemon:  g.On(gates.InPlaceUpdateEnvFromMetadata),
		Resize:     g.On(gates.InPlaceWorkloadVerticalScaling),
		ResizePods: r.pods,
	}
}

// broadcastJobs are the options for the reconciler of BroadcastJobs.
func broadcastJobs(o options.Options) broadcastjob.Options {
	return broadcastjob.Options{Bind: !o.ScheduleBroadcastJobPods}
}

// cloneSets are the options for the reconciler of CloneSets.
func cloneSets(g gates.Gates, in *inplace.Installation) cloneset.Options {
	return cloneset.Options{
		ShortHash:                g.On(gates.CloneSetShortHash),
		PartitionRollback:        g.On(gates.CloneSetPartitionRollback),
		PreparingUpdateIsUpdated: g.On(gates.PreparingUpdateAsUpdate),
		RecreateOnClaimChange:    g.On(gates.RecreatePodWhenChangeVCTInCloneSetGate),
		Installed:                in,
		PreDownload:              g.On(gates.PreDownloadImageForInPlaceUpdate),
		SkipQuiet:                g.On(gates.CloneSetEventHandlerOptimization),
	}
}

// statefulSets are the options for the reconciler of StatefulSets.
func statefulSets(o options.Options, in *inplace.Installation) statefulset.Options {
	g := o.Gates
	return statefulset.Options{
		UnavailableFirst:         o.UnavailableStatefulSetPodsFirst,
		StartOrdinal:             g.On(gates.StatefulSetStartOrdinal),
		NoPodIndex:               !g.On(gates.PodIndexLabel),
		IgnoreRetention:          !g.On(gates.StatefulSetAutoDeletePVC),
		ExpandClaims:             g.On(gates.StatefulSetAutoResizePVCGate),
		PreparingUpdateIsUpdated: g.On(gates.PreparingUpdateAsUpdate),
		Installed:                in,
		PreDownload:              g.On(gates.PreDownloadImageForInPlaceUpdate),
	}
}

// daemonSets are the options for the reconciler of DaemonSets.
func daemonSets(o options.Options, in *inplace.Installation) daemonset.Options {
	return daemonset.Options{
		BindDirectly: !o.ScheduleDaemonSetPods, LooseBudget: o.LooseDaemonSetBudget, Installed: in,
		PreDownload: o.Gates.On(gates.PreDownloadImageForDaemonSetUpdate), SkipQuiet: true,
	}
}

// holds reports whether Deployments are held: what ends their holds runs.
func holds(o options.Options) bool {
	names := chosen(o)
	return slices.Contains(names, "native") && !slices.Contains(names, "-native")
}

// natives are the options for the reconciler of the workloads of apps/v1. The gate of resizes is for the kinds of the
// reference alone.
func natives(o options.Options, in *inplace.Installation, resizes bool) native.Options {
	with := *in
	with.Resize = resizes
	return native.Options{Deployments: true, Class: o.NativeClass, Installed: with, Registerer: metrics.Registry}
}

// nodeImages are the options for the reconciler of NodeImages, to which no delay is another thing than none given.
func nodeImages(o options.Options) nodeimage.Options {
	return nodeimage.Options{CreationDelay: cmp.Or(o.NodeImageCreationDelay, -1), SecretNamespace: o.PullSecretNamespace}
}

// sidecarSets are the options for the reconciler of SidecarSets, whose history is in the namespace of the manager.
func sidecarSets(o options.Options) sidecarset.Options {
	return sidecarset.Options{
		Namespace: o.Webhook.Namespace, RefreshNotUpdate: o.RefreshNotUpdate, Registerer: metrics.Registry,
	}
}

// pullJobs are the options for the reconciler of ImagePullJobs.
func pullJobs(o options.Options) imagepulljob.Options {
	return imagepulljob.Options{SecretNamespace: o.PullSecretNamespace, KeepSeconds: o.PullKeepSeconds}
}

// podStates are the options for the reconciler of PersistentPodStates, which heeds the start of ordinals as that of
// StatefulSets does.
func podStates(o options.Options) persistentpodstate.Options {
	return persistentpodstate.Options{
		Namespace: o.Webhook.Namespace, StartOrdinal: o.Gates.On(gates.StatefulSetStartOrdinal),
	}
}

// podUnavailableBudgets are the options for the reconciler of PodUnavailableBudgets, whose policy is that of admission.
func podUnavailableBudgets(g gates.Gates, r resizing) podunavailablebudget.Options {
	return podunavailablebudget.Options{Policy: budgetPolicy(g, r)}
}

// podProbeMarkers are the options for the reconciler of PodProbeMarkers.
func podProbeMarkers(g gates.Gates) podprobemarker.Options {
	return podprobemarker.Options{Serverless: serverless(g)}
}

// podScope are the options for what says which pods are sent to their webhook. Without the webhook it takes the entries
// away.
func podScope(o options.Options) podscope.Options {
	return podscope.Options{
		Namespace:           o.Webhook.Namespace,
		Service:             o.Webhook.Service,
		ReadinessGateForAll: o.Gates.On(gates.KruisePodReadinessGate),
		EnhancedLiveness:    o.Gates.On(gates.EnhancedLivenessProbe),
		Off:                 !o.Gates.On(gates.PodWebhook),
		NoDeletes:           !o.Gates.On(gates.PodUnavailableBudgetDeleteGate),
		Updates:             o.Gates.On(gates.PodUnavailableBudgetUpdateGate),
		ExemptUsers:         o.BudgetExemptUsers,
		NoSpreads:           !o.Gates.On(gates.WorkloadSpread),
		Registerer:          metrics.Registry,
		Serverless:          serverless(o.Gates),
	}
}

// serverless reports whether the providers of virtual nodes get probes.
func serverless(g gates.Gates) bool {
	return g.On(gates.PodProbeMarkerGate) && g.On(gates.EnablePodProbeMarkerOnServerless)
}

// admission are the gates that the webhooks mind.
func admission(g gates.Gates) webhooks.Options {
	templates := kinds.Options{
		TemplateNoDefaults:   g.On(gates.TemplateNoDefaults),
		HostNetworkHostPorts: g.On(gates.DefaultHostNetworkHostPortsInPodTemplates),
	}
	return webhooks.Options{
		Pod: pod.Options{
			Readiness:        pod.ReadinessOptions{ForAll: g.On(gates.KruisePodReadinessGate)},
			Probes:           pod.ProbeOptions{Serverless: serverless(g)},
			Sidecars:         pod.SidecarOptions{SortContainers: g.On(gates.EnableSortSidecarContainerByName)},
			EnhancedLiveness: g.On(gates.EnhancedLivenessProbe),
			Registerer:       metrics.Registry,
		},
		NoPods:    !g.On(gates.PodWebhook),
		NoSpreads: !g.On(gates.WorkloadSpread),
		Disruption: disruption.Options{
			NoDeletes: !g.On(gates.PodUnavailableBudgetDeleteGate), Updates: g.On(gates.PodUnavailableBudgetUpdateGate),
		},
		BroadcastJob:     templates,
		AdvancedCronJob:  templates,
		CloneSet:         templates,
		StatefulSet:      statefulsets.Options{Options: templates, ExpandClaims: g.On(gates.StatefulSetAutoResizePVCGate)},
		UnitedDeployment: templates,
		Deletion: deletion.Options{
			Policy: protection.Policy{
				Disabled:       !g.On(gates.ResourcesDeletionProtection),
				CountInstances: g.On(gates.DeletionProtectionForCRDCascadingGate),
			},
			Registerer: metrics.Registry,
		},
		ImagePull:                imagepull.Options{Jobs: g.On(gates.ImagePullJobGate), NoDaemon: !g.On(gates.KruiseDaemon)},
		ContainerRecreateRequest: containerrecreaterequest.Options{NoDaemon: !g.On(gates.KruiseDaemon)},
		PodProbeMarker:           probes.Options{Off: !g.On(gates.PodProbeMarkerGate)},
		ResourceDistribution:     resourcedistribution.Options{On: g.On(gates.ResourceDistributionGate)},
		SidecarSet:               sets.Options{AnyPodMetadata: g.On(gates.SidecarSetPatchPodMetadataDefaultsAllowed)},
	}
}

// withoutEffect has a line for each changed gate that changes nothing, with the reason.
func withoutEffect(g gates.Gates) []string {
	var all []string
	for _, name := range g.Changed() {
		if why, ok := inert()[name]; ok {
			all = append(all, fmt.Sprintf("%s: %s", name, why))
		}
	}
	return all
}

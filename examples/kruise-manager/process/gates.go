package process

import (
	"cmp"
	"slices"

	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/gates"
	"github.com/kruisekit/kruisekit/webhooks"
	webhook "github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

// read are the gates that something reads, or from which others follow.
func read() []gates.Gate {
	return []gates.Gate{
		gates.CloneSetEventHandlerOptimization,
		gates.CloneSetPartitionRollback,
		gates.CloneSetShortHash,
		gates.DefaultHostNetworkHostPortsInPodTemplates,
		gates.EnableExternalCerts,
		gates.ImagePullJobGate,
		gates.InPlaceUpdateEnvFromMetadata,
		gates.InPlaceWorkloadVerticalScaling,
		gates.KruiseDaemon,
		gates.PodWebhook,
		gates.PreDownloadImageForDaemonSetUpdate,
		gates.PreDownloadImageForInPlaceUpdate,
		gates.PreparingUpdateAsUpdate,
		gates.RecreatePodWhenChangeVCTInCloneSetGate,
		gates.ResourcesDeletionProtection,
		gates.TemplateNoDefaults,
	}
}

// cloneSets are the gates that the reconciler of CloneSets minds.
func cloneSets(g gates.Gates) cloneset.Options {
	return cloneset.Options{
		ShortHash:                g.On(gates.CloneSetShortHash),
		PartitionRollback:        g.On(gates.CloneSetPartitionRollback),
		PreparingUpdateIsUpdated: g.On(gates.PreparingUpdateAsUpdate),
		RecreateOnClaimChange:    g.On(gates.RecreatePodWhenChangeVCTInCloneSetGate),
		NoDaemon:                 !g.On(gates.InPlaceUpdateEnvFromMetadata),
		Resize:                   g.On(gates.InPlaceWorkloadVerticalScaling),
		PreDownload:              g.On(gates.PreDownloadImageForInPlaceUpdate),
		SkipQuiet:                g.On(gates.CloneSetEventHandlerOptimization),
	}
}

// admission are the gates that the webhooks mind.
func admission(g gates.Gates) webhooks.Options {
	return webhooks.Options{
		CloneSet: webhook.Options{
			TemplateNoDefaults:   g.On(gates.TemplateNoDefaults),
			HostNetworkHostPorts: g.On(gates.DefaultHostNetworkHostPortsInPodTemplates),
			DeletionProtection:   g.On(gates.ResourcesDeletionProtection),
		},
		ImagePull:                imagepull.Options{Jobs: g.On(gates.ImagePullJobGate), NoDaemon: !g.On(gates.KruiseDaemon)},
		ContainerRecreateRequest: containerrecreaterequest.Options{NoDaemon: !g.On(gates.KruiseDaemon)},
	}
}

// running are the controllers that run: those that were chosen, but for what a gate switches off.
func running(o options.Options) []string {
	names := slices.Clone(o.Controllers)
	if len(names) == 0 {
		names = []string{"*"}
	}
	if !o.Gates.On(gates.KruiseDaemon) {
		// Nobody would stop a container.
		names = append(names, "-containerrecreaterequest")
	}
	return names
}

// withoutEffect are the gates that somebody changed and nothing reads.
func withoutEffect(g gates.Gates) []gates.Gate {
	return slices.DeleteFunc(g.Changed(), func(name gates.Gate) bool { return slices.Contains(read(), name) })
}

package process

import (
	"slices"

	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	webhook "github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// read are the gates that something reads, or from which others follow.
func read() []gates.Gate {
	return []gates.Gate{
		gates.CloneSetEventHandlerOptimization,
		gates.CloneSetPartitionRollback,
		gates.CloneSetShortHash,
		gates.DefaultHostNetworkHostPortsInPodTemplates,
		gates.EnableExternalCerts,
		gates.InPlaceUpdateEnvFromMetadata,
		gates.InPlaceWorkloadVerticalScaling,
		gates.KruiseDaemon,
		gates.PodWebhook,
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

// admission are the gates that the webhooks of CloneSets mind.
func admission(g gates.Gates) webhook.Options {
	return webhook.Options{
		TemplateNoDefaults:   g.On(gates.TemplateNoDefaults),
		HostNetworkHostPorts: g.On(gates.DefaultHostNetworkHostPortsInPodTemplates),
		DeletionProtection:   g.On(gates.ResourcesDeletionProtection),
	}
}

// withoutEffect are the gates that somebody changed and nothing reads.
func withoutEffect(g gates.Gates) []gates.Gate {
	return slices.DeleteFunc(g.Changed(), func(name gates.Gate) bool { return slices.Contains(read(), name) })
}

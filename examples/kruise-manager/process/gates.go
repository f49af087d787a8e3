package process

import (
	"slices"

	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/gates"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
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
		gates.ImagePullJobGate,
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

// pullJobs is what the reconciler of ImagePullJobs is told.
func pullJobs(o options.Options) imagepulljob.Options {
	return imagepulljob.Options{SecretNamespace: o.PullSecretNamespace, KeepSeconds: o.PullKeepSeconds}
}

// chosen are the controllers that the command line asks for, without those whose gates are off.
func chosen(o options.Options) []string {
	names := slices.Clone(o.Controllers)
	if len(names) == 0 {
		names = []string{"*"}
	}
	if !o.Gates.On(gates.KruiseDaemon) || !o.Gates.On(gates.ImagePullJobGate) {
		names = append(names, "-imagepulljob")
	}
	return names
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

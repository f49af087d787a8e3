package gates

// Gate is the name of one.
type Gate string

// The gates of the reference.
const (
	CloneSetEventHandlerOptimization          Gate = "CloneSetEventHandlerOptimization"
	CloneSetPartitionRollback                 Gate = "CloneSetPartitionRollback"
	CloneSetShortHash                         Gate = "CloneSetShortHash"
	DaemonSetPruneIneligibleNodes             Gate = "DaemonSetPruneIneligibleNodes"
	DaemonWatchingPod                         Gate = "DaemonWatchingPod"
	DefaultHostNetworkHostPortsInPodTemplates Gate = "DefaultHostNetworkHostPortsInPodTemplates"
	DeletionProtectionForCRDCascadingGate     Gate = "DeletionProtectionForCRDCascadingGate"
	EnableExternalCerts                       Gate = "EnableExternalCerts"
	EnablePodProbeMarkerOnServerless          Gate = "EnablePodProbeMarkerOnServerless"
	EnableSortSidecarContainerByName          Gate = "EnableSortSidecarContainerByName"
	EnhancedLivenessProbe                     Gate = "EnhancedLivenessProbe"
	ForceDeleteTimeoutExpectationGate         Gate = "ForceDeleteTimeoutExpectationGate"
	ImagePullJobGate                          Gate = "ImagePullJobGate"
	InPlacePodVerticalScaling                 Gate = "InPlacePodVerticalScaling"
	InPlaceUpdateEnvFromMetadata              Gate = "InPlaceUpdateEnvFromMetadata"
	InPlaceWorkloadVerticalScaling            Gate = "InPlaceWorkloadVerticalScaling"
	KruiseDaemon                              Gate = "KruiseDaemon"
	KruisePodReadinessGate                    Gate = "KruisePodReadinessGate"
	PodIndexLabel                             Gate = "PodIndexLabel"
	PodProbeMarkerGate                        Gate = "PodProbeMarkerGate"
	PodUnavailableBudgetDeleteGate            Gate = "PodUnavailableBudgetDeleteGate"
	PodUnavailableBudgetUpdateGate            Gate = "PodUnavailableBudgetUpdateGate"
	PodWebhook                                Gate = "PodWebhook"
	PreDownloadImageForDaemonSetUpdate        Gate = "PreDownloadImageForDaemonSetUpdate"
	PreDownloadImageForInPlaceUpdate          Gate = "PreDownloadImageForInPlaceUpdate"
	PreparingUpdateAsUpdate                   Gate = "PreparingUpdateAsUpdate"
	RecreatePodWhenChangeVCTInCloneSetGate    Gate = "RecreatePodWhenChangeVCTInCloneSetGate"
	ResourceDistributionGate                  Gate = "ResourceDistributionGate"
	ResourcesDeletionProtection               Gate = "ResourcesDeletionProtection"
	SidecarSetPatchPodMetadataDefaultsAllowed Gate = "SidecarSetPatchPodMetadataDefaultsAllowed"
	SidecarTerminator                         Gate = "SidecarTerminator"
	StatefulSetAutoDeletePVC                  Gate = "StatefulSetAutoDeletePVC"
	StatefulSetAutoResizePVCGate              Gate = "StatefulSetAutoResizePVCGate"
	StatefulSetStartOrdinal                   Gate = "StatefulSetStartOrdinal"
	TemplateNoDefaults                        Gate = "TemplateNoDefaults"
	WorkloadSpread                            Gate = "WorkloadSpread"
)

// NativeRollouts is the one gate that the reference does not have: updates in place of StatefulSets and DaemonSets of
// apps/v1. AllAlpha and AllBeta, which name gates of the reference, do not turn it on: it needs rights of its own.
const NativeRollouts Gate = "NativeRollouts"

// feature is a gate's default and stage. One that is named is only set by its name.
type feature struct{ on, alpha, named bool }

// table has every gate, those of the reference as the reference has them.
func table() map[Gate]feature {
	alpha, on, off := feature{alpha: true}, feature{on: true}, feature{}
	return map[Gate]feature{
		CloneSetEventHandlerOptimization:          alpha,
		CloneSetPartitionRollback:                 alpha,
		CloneSetShortHash:                         alpha,
		DaemonSetPruneIneligibleNodes:             alpha,
		DaemonWatchingPod:                         on,
		DefaultHostNetworkHostPortsInPodTemplates: alpha,
		DeletionProtectionForCRDCascadingGate:     alpha,
		EnableExternalCerts:                       alpha,
		EnablePodProbeMarkerOnServerless:          alpha,
		EnableSortSidecarContainerByName:          alpha,
		EnhancedLivenessProbe:                     alpha,
		ForceDeleteTimeoutExpectationGate:         alpha,
		ImagePullJobGate:                          alpha,
		InPlacePodVerticalScaling:                 alpha,
		InPlaceUpdateEnvFromMetadata:              on,
		InPlaceWorkloadVerticalScaling:            alpha,
		KruiseDaemon:                              on,
		KruisePodReadinessGate:                    alpha,
		NativeRollouts:                            {named: true},
		PodIndexLabel:                             on,
		PodProbeMarkerGate:                        on,
		PodUnavailableBudgetDeleteGate:            on,
		PodUnavailableBudgetUpdateGate:            alpha,
		PodWebhook:                                on,
		PreDownloadImageForDaemonSetUpdate:        alpha,
		PreDownloadImageForInPlaceUpdate:          alpha,
		PreparingUpdateAsUpdate:                   alpha,
		RecreatePodWhenChangeVCTInCloneSetGate:    alpha,
		ResourceDistributionGate:                  off,
		ResourcesDeletionProtection:               off,
		SidecarSetPatchPodMetadataDefaultsAllowed: alpha,
		SidecarTerminator:                         alpha,
		StatefulSetAutoDeletePVC:                  on,
		StatefulSetAutoResizePVCGate:              alpha,
		StatefulSetStartOrdinal:                   alpha,
		TemplateNoDefaults:                        alpha,
		WorkloadSpread:                            on,
	}
}

// rule makes gates what another is.
type rule struct {
	// when any of these is so,
	when []Gate
	is   bool
	// then these are too.
	then []Gate
}

// rules in the order in which they hold: what one turns off, the next sees off.
func rules() []rule {
	return []rule{
		{when: []Gate{PodWebhook}, is: false, then: []Gate{
			KruisePodReadinessGate, PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate, WorkloadSpread,
			SidecarSetPatchPodMetadataDefaultsAllowed, EnhancedLivenessProbe, EnablePodProbeMarkerOnServerless,
		}},
		{when: []Gate{KruiseDaemon}, is: false, then: []Gate{
			PreDownloadImageForInPlaceUpdate, PreDownloadImageForDaemonSetUpdate, DaemonWatchingPod,
			InPlaceUpdateEnvFromMetadata,
			PodProbeMarkerGate, SidecarTerminator, ImagePullJobGate, EnhancedLivenessProbe,
		}},
		{
			when: []Gate{PreDownloadImageForInPlaceUpdate, PreDownloadImageForDaemonSetUpdate},
			is:   true,
			then: []Gate{ImagePullJobGate},
		},
		{when: []Gate{ResourcesDeletionProtection}, is: false, then: []Gate{DeletionProtectionForCRDCascadingGate}},
	}
}

package webhooks

// Conversions returns the names of the CRDs that the conversion webhook can convert. Those with the strategy Webhook
// need its CA; the CRDs of the image kinds have it only where an earlier installation left them so.
func Conversions() []string {
	return []string{
		"advancedcronjobs.apps.kruise.io",
		"broadcastjobs.apps.kruise.io",
		"clonesets.apps.kruise.io",
		"containerrecreaterequests.apps.kruise.io",
		"daemonsets.apps.kruise.io",
		"imagelistpulljobs.apps.kruise.io",
		"imagepulljobs.apps.kruise.io",
		"nodeimages.apps.kruise.io",
		"persistentpodstates.apps.kruise.io",
		"podunavailablebudgets.policy.kruise.io",
		"resourcedistributions.apps.kruise.io",
		"sidecarsets.apps.kruise.io",
		"statefulsets.apps.kruise.io",
		"uniteddeployments.apps.kruise.io",
		"workloadspreads.apps.kruise.io",
	}
}

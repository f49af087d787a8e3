package kruise

const (
	// PodPubNoProtectionKey is the annotation that exempts a pod from its budget: 1, t, T, true, True or TRUE.
	PodPubNoProtectionKey = "pub.kruise.io/no-protect"
	// PodRelatedPubKey is the annotation with the name of the PodUnavailableBudget that guards a pod.
	PodRelatedPubKey = "pub.kruise.io/related-pub"
	// PodRelatedPubKeyOld is written with PodRelatedPubKey, and read where that is absent.
	PodRelatedPubKeyOld = "kruise.io/related-pub"
	// PubUnavailablePodLabelPrefix begins the key of any label that makes a pod count as unavailable.
	PubUnavailablePodLabelPrefix = "unavailable-pod.kruise.io/"
)

package kruise

// Keys that hold the revision of a pod and of a ControllerRevision.
const (
	// PodRevisionLabelKey is the label of a pod with its revision: the name of a ControllerRevision, or the short
	// hash, which is what follows the name's last dash.
	PodRevisionLabelKey = "controller-revision-hash"
	// PodTemplateHashLabelKey is the label of a pod with the short hash of its revision.
	PodTemplateHashLabelKey = "pod-template-hash"
	// RevisionHashLabelKey is the label of a ControllerRevision with the short hash.
	RevisionHashLabelKey = "controller.kubernetes.io/hash"
	// CloneSetVolumeClaimTemplateHashKey is the annotation of a CloneSet's ControllerRevision with the hash of the
	// claim templates, which its data does not hold.
	CloneSetVolumeClaimTemplateHashKey = "kruise.io/cloneset-volumeclaimtemplate-hash"
)

// Labels of a ControllerRevision for which the image pre-download is decided; their value is "true".
const (
	// ImagePreDownloadCreatedKey says that the images are being pulled ahead. Its spelling is part of the contract.
	ImagePreDownloadCreatedKey = "apps.kruise.io/pre-predownload-created"
	// ImagePreDownloadIgnoredKey says that no images are pulled ahead.
	ImagePreDownloadIgnoredKey = "apps.kruise.io/image-predownload-ignored"
)

const (
	// CloneSetInstanceIDKey is the label that joins a pod of a CloneSet with its claims.
	CloneSetInstanceIDKey = "apps.kruise.io/cloneset-instance-id"
	// SpecifiedDeleteKey is the label that asks the owner of a pod, with any value, to delete it within its budget.
	SpecifiedDeleteKey = "apps.kruise.io/specified-delete"
)

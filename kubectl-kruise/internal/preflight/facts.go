package preflight

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Facts are what the check has read of a cluster.
type Facts struct {
	Now time.Time
	// Kubernetes is the version of the API server, such as v1.36.2.
	Kubernetes string
	// Namespace is where the manager is, or is to be.
	Namespace string
	// NamespaceLabel is the label control-plane of the namespace; nil where the namespace does not exist.
	NamespaceLabel *string
	// SecretNamespace reports whether kruise-daemon-config exists.
	SecretNamespace bool

	// Manager is the container of its Deployment; nil without one.
	Manager *corev1.Container
	// Release is the record of Helm; nil without one.
	Release *Release
	// Roles are the names of ClusterRoles that only some versions have.
	Roles []string
	// Certificates reports whether the Secret of the webhooks exists.
	Certificates bool
	// LeaseHolder leads, and renewed its lease at LeaseRenewed. LockConfigMap reports the lock of 1.5.0 and older.
	LeaseHolder   string
	LeaseRenewed  time.Time
	LockConfigMap bool

	Definitions []Definition
	// Webhooks are the configurations, validating and mutating: both kinds have the fields that are read.
	Webhooks []*admissionv1.ValidatingWebhookConfiguration
	// Objects are those of all kinds, in the version that their CRD stores.
	Objects []unstructured.Unstructured
	// Pods are those of the namespaces with Advanced StatefulSets, Claims are theirs.
	Pods   []*corev1.Pod
	Claims []*corev1.PersistentVolumeClaim

	// Unread lists what could not be read, with the reason.
	Unread []string
}

// Release is the newest record of Helm.
type Release struct {
	Name, Namespace, Status string
	Chart, Version          string
}

// Definition is a CRD.
type Definition struct {
	Name string
	// Generator is the version of controller-gen.
	Generator      string
	Served         []string
	StoredVersions []string
	// Untrusted reports a conversion webhook without a CA.
	Untrusted bool
	// ReadError is why the objects cannot be read.
	ReadError string
}

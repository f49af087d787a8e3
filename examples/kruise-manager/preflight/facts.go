package preflight

import (
	"time"

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

	// Manager and Daemon are nil where they do not run.
	Manager, Daemon *Program
	// Release is the record of Helm; nil without one.
	Release *Release
	// Roles are the names of ClusterRoles that only some versions have.
	Roles []string
	// Certificates reports whether the Secret of the webhooks exists.
	Certificates bool
	// LeaseHolder leads, LeaseRenewed is when it has said so. LockConfigMap reports the lock of 1.5.0 and older.
	LeaseHolder   string
	LeaseRenewed  time.Time
	LockConfigMap bool

	Definitions []Definition
	Webhooks    []Webhooks
	// Objects are those of all kinds, in the version that the API server prefers.
	Objects []unstructured.Unstructured
	// Pods are those of the namespaces with Advanced StatefulSets, Claims are theirs.
	Pods   []corev1.Pod
	Claims []corev1.PersistentVolumeClaim

	// Unread says what could not be read, and why.
	Unread []string
}

// Program is a Deployment or a DaemonSet.
type Program struct {
	Kind, Name, Image string
	Replicas          int32
	Command, Args     []string
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
	// Converted reports a conversion by a webhook, and Trusted that the CRD has its CA.
	Converted, Trusted bool
	Objects            int
	// ReadError is why the objects cannot be read.
	ReadError string
}

// Webhooks are one webhook configuration.
type Webhooks struct {
	Validating bool
	Name       string
	// Template reports the annotation of the reference.
	Template bool
	Entries  []Entry
}

// Entry is one webhook.
type Entry struct {
	Name, Path string
	Trusted    bool
}

package certificates

import (
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	day  = 24 * time.Hour
	year = 365 * day

	// maxRenewBefore keeps a certificate, which lives twice as long, below the life of its CA.
	maxRenewBefore = 2 * year
)

// Options of a Keeper.
type Options struct {
	// Targets are the objects that need the CA. One that does not exist gets it when it is created.
	Targets []Target
	// Secret holds CA and certificate, in the namespace of the service. Defaults to the service's name and "-certs".
	Secret string
	// External means that another program fills the Secret (ca.crt, tls.crt, tls.key) and the targets, such as
	// cert-manager. Then nothing is ever written.
	External bool
	// RenewBefore is how long before its end a certificate is replaced; it is made for twice that time. Defaults to 180
	// days, may be 2 years at most.
	RenewBefore time.Duration
	// StartTimeout ends Start with an error when the first certificate is not in use by then. Zero waits for ever, and so
	// does External, because the program that fills the Secret may start later.
	StartTimeout time.Duration
}

func (o Options) withDefaults(service types.NamespacedName) Options {
	if o.Secret == "" {
		o.Secret = service.Name + "-certs"
	}
	if o.RenewBefore == 0 {
		o.RenewBefore = 180 * day
	}
	return o
}

func (o Options) validate(service types.NamespacedName) error {
	var all []error
	if service.Name == "" || service.Namespace == "" {
		all = append(all, fmt.Errorf("the service %q needs a name and a namespace", service))
	}
	if o.RenewBefore < 0 || o.RenewBefore > maxRenewBefore {
		all = append(all, fmt.Errorf("renew before %s: want at most %s", o.RenewBefore, maxRenewBefore))
	}
	if o.StartTimeout < 0 {
		all = append(all, errors.New("start timeout must not be negative"))
	}
	for _, t := range o.Targets {
		if t.kind.Empty() || t.name == "" {
			all = append(all, fmt.Errorf("target %q: make it with Mutating, Validating or Conversion, and a name", t))
		}
	}
	return errors.Join(all...)
}

// Target is an object that names the service and needs its CA.
type Target struct {
	kind schema.GroupVersionKind
	name string
}

// Mutating is a MutatingWebhookConfiguration.
func Mutating(name string) Target { return Target{mutating(), name} }

// Validating is a ValidatingWebhookConfiguration.
func Validating(name string) Target { return Target{validating(), name} }

// Conversion is a CustomResourceDefinition that is converted by webhook.
func Conversion(crd string) Target { return Target{definitions(), crd} }

// String is kind and name.
func (t Target) String() string { return t.kind.Kind + "/" + t.name }

func mutating() schema.GroupVersionKind {
	return admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
}

func validating() schema.GroupVersionKind {
	return admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration")
}

func definitions() schema.GroupVersionKind {
	return apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
}

func secrets() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Secret") }

package scope

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// The names of the reference, and of the two configurations of pods, which the reference lacks.
const (
	DefaultConfiguration           = "kruise-pods-webhook-configuration"
	ProvisionalConfiguration       = "kruise-pods-provisional-webhook-configuration"
	DefaultMainConfiguration       = "kruise-mutating-webhook-configuration"
	DefaultValidatingConfiguration = "kruise-validating-webhook-configuration"
	DefaultNamespace               = kruise.DefaultNamespace
	DefaultService                 = "kruise-webhook-service"

	// Path serves the webhook of new pods.
	Path = "/mutate-pod"
	// DisruptionPath serves the webhook of pods that exist.
	DisruptionPath = "/validate-pod"
)

// Reach is how API servers reach the webhook of pods.
type Reach struct {
	// Namespace and Service are for API servers that reach the webhook through a Service.
	Namespace, Service string
	// URL is for API servers that reach it directly, and CABundle the CA there.
	URL      string
	CABundle []byte
}

// Client returns how API servers reach the webhook of new pods, as entries have it.
func (r Reach) Client() admissionregistrationv1.WebhookClientConfig { return r.At(Path) }

// At returns how API servers reach a path.
func (r Reach) At(path string) admissionregistrationv1.WebhookClientConfig {
	if r.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(r.URL + path), CABundle: r.CABundle}
	}
	return admissionregistrationv1.WebhookClientConfig{
		CABundle: r.CABundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: r.Namespace, Name: r.Service, Path: ptr.To(path), Port: ptr.To[int32](443),
		},
	}
}

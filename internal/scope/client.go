package scope

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/pub"
)

// The names of the reference, and that of the configuration of pods, which it does not have.
const (
	DefaultConfiguration     = "kruise-pods-webhook-configuration"
	DefaultMainConfiguration = "kruise-mutating-webhook-configuration"
	DefaultNamespace         = pub.DefaultNamespace
	DefaultService           = "kruise-webhook-service"

	// Path is where the webhook of pods is served.
	Path = "/mutate-pod"
)

// Reach is how API servers reach the webhook of pods.
type Reach struct {
	// Namespace and Service are for those that go through a service.
	Namespace, Service string
	// URL is for those that do not, and CABundle whom they trust.
	URL      string
	CABundle []byte
}

// Client is the same as entries have it.
func (r Reach) Client() admissionregistrationv1.WebhookClientConfig {
	if r.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(r.URL + Path), CABundle: r.CABundle}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: r.CABundle, Service: &admissionregistrationv1.ServiceReference{
		Namespace: r.Namespace, Name: r.Service, Path: ptr.To(Path), Port: ptr.To[int32](443),
	}}
}

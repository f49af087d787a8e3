package podscope

import (
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/write"
)

// form is the kind of configuration that is kept. Entries of both kinds are planned and compared as those of a
// MutatingWebhookConfiguration, which has one field more: reinvocationPolicy.
type form struct {
	// controller is the name of the controller.
	controller string
	// webhook is its name in metrics.
	webhook string
	// disruptions are kept in a ValidatingWebhookConfiguration.
	disruptions bool
}

const webhookPods, webhookDisruptions = "pods", "disruptions"

func mutating() form { return form{controller: "podscope-controller", webhook: webhookPods} }

func validating() form {
	return form{controller: "disruptionscope-controller", webhook: webhookDisruptions, disruptions: true}
}

// empty is an object of the kind.
func (f form) empty() client.Object {
	if f.disruptions {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{}
}

// read returns a live configuration as it is compared. It shares memory with the object.
func (form) read(o client.Object) *admissionregistrationv1.MutatingWebhookConfiguration {
	if m, is := o.(*admissionregistrationv1.MutatingWebhookConfiguration); is {
		return m
	}
	v, is := o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !is {
		return nil
	}
	m := &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: v.TypeMeta, ObjectMeta: v.ObjectMeta}
	for i := range v.Webhooks {
		w := &v.Webhooks[i]
		m.Webhooks = append(m.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name:                    w.Name,
			ClientConfig:            w.ClientConfig,
			Rules:                   w.Rules,
			FailurePolicy:           w.FailurePolicy,
			MatchPolicy:             w.MatchPolicy,
			NamespaceSelector:       w.NamespaceSelector,
			ObjectSelector:          w.ObjectSelector,
			SideEffects:             w.SideEffects,
			TimeoutSeconds:          w.TimeoutSeconds,
			AdmissionReviewVersions: w.AdmissionReviewVersions,
			MatchConditions:         w.MatchConditions,
		})
	}
	return m
}

// write returns a planned write as it is sent. A patch is the same for both kinds, because disruptions have no
// reinvocationPolicy.
func (f form) write(w *write.Write) (*write.Write, error) {
	if !f.disruptions {
		return w, nil
	}
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Object.GetName()},
	}
	if w.Verb == write.Create {
		data, err := json.Marshal(w.Object)
		if err == nil {
			err = json.Unmarshal(data, object)
		}
		if err != nil {
			return nil, fmt.Errorf("convert configuration: %w", err)
		}
		object.TypeMeta = metav1.TypeMeta{}
	}
	sent := *w
	sent.Object = object
	return &sent, nil
}

package protection

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/protection"
)

// configuration is where the webhooks of all kinds are.
const configuration = "kruise-validating-webhook-configuration"

// WebhookName returns the name of the webhook for deletions of a kind. Kinds of this project also have a webhook for
// other operations.
func WebhookName(k protection.Kind) string {
	kind := strings.ToLower(k.Kind)
	switch {
	case k.Group == "apps":
		return "vbuiltin" + kind + ".kb.io"
	case strings.HasSuffix(k.Group, ".kruise.io"):
		return "v" + kind + "-delete.kb.io"
	}
	return "v" + kind + ".kb.io"
}

// Scope returns the patch of the generated configuration that has API servers ask about labelled objects alone, whose
// deletion the webhook could refuse: no other deletion waits for a manager.
func Scope() *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
	}
	for _, k := range protection.Kinds() {
		values := []string{string(always)}
		if len(k.Dependents) > 0 {
			values = append(values, string(cascading))
		}
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{
			Name: WebhookName(k), ObjectSelector: selector(),
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "protected", Expression: labelled("oldObject", values)},
				{Name: "active", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
			},
		})
	}
	return c
}

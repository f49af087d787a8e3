package webhooks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/selection"
)

// Select narrows a MutatingWebhookConfiguration or ValidatingWebhookConfiguration, such as those of config/webhook: API
// servers then ask about the objects that a selector matches alone, of the kinds of controllers.SelectedKinds. A
// webhook that has an object selector keeps its requirements. Webhooks of other kinds stay as they are.
func Select(configuration client.Object, selector metav1.LabelSelector) error {
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			narrow(&c.Webhooks[i].ObjectSelector, c.Webhooks[i].Rules, selector)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			narrow(&c.Webhooks[i].ObjectSelector, c.Webhooks[i].Rules, selector)
		}
	default:
		return fmt.Errorf("select objects of webhooks: %T is no webhook configuration", configuration)
	}
	return nil
}

// narrow adds the requirements of a selector to those of a webhook, if it is about selected kinds alone.
func narrow(
	to **metav1.LabelSelector, rules []admissionregistrationv1.RuleWithOperations, selector metav1.LabelSelector,
) {
	if len(rules) == 0 || slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return !selects(r.Rule)
	}) {
		return
	}
	narrowed := (*to).DeepCopy()
	if narrowed == nil {
		narrowed = &metav1.LabelSelector{}
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		narrowed.MatchExpressions = append(narrowed.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]},
		})
	}
	narrowed.MatchExpressions = append(narrowed.MatchExpressions, selector.DeepCopy().MatchExpressions...)
	*to = narrowed
}

// selects reports whether a rule is about selected kinds alone.
func selects(r admissionregistrationv1.Rule) bool {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			known := false
			for _, kind := range selection.Kinds() {
				known = known || kind.Group == group && strings.ToLower(kind.Kind)+"s" == resource
			}
			if !known {
				return false
			}
		}
	}
	return true
}

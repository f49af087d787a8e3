package scope

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Sent returns the selector of the namespaces whose pods API servers send to the webhook, if anything concerns them.
// own is the namespace of the manager.
func Sent(own string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: spared(own)}
}

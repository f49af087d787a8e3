package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// closedSeconds is the default of the reference: the longest wait for a rejection.
	closedSeconds = 10
	// openSeconds is shorter, because these pods do not depend on an answer.
	openSeconds = 3
	// openSuffix makes the path of pods that may be created without an answer: a rejection would count there too.
	openSuffix = "-open"
	// maxNamespaceLetters of the namespaces in one selector: etcd accepts 1.5 MiB for an object.
	maxNamespaceLetters = 96 << 10

	// conditions is the prefix of the names of match conditions.
	conditions = "kruisekit.dev/"
	// Selected is the match condition of the pods that an entry selects.
	Selected = conditions + "selected"
	// NotTaken is the match condition that excludes the pods of another entry.
	NotTaken = conditions + "not-taken"
)

type (
	entry          = admissionregistrationv1.MutatingWebhook
	matchCondition = admissionregistrationv1.MatchCondition
)

// OwnRequirement reports whether a requirement on namespaces is one that entries have: other values of it are stale.
func OwnRequirement(r metav1.LabelSelectorRequirement) bool {
	return r.Key == corev1.LabelMetadataName &&
		(r.Operator == metav1.LabelSelectorOpIn || slices.Contains(r.Values, metav1.NamespaceSystem))
}

// frame returns an entry without name and conditions, for all pods that are not spared.
func frame(in Input, open bool) *entry {
	policy, seconds, suffix := fail, int32(closedSeconds), ""
	if open {
		policy, seconds, suffix = ignore, openSeconds, openSuffix
	}
	return &entry{
		ClientConfig:  onward(in.Client, suffix),
		FailurePolicy: &policy,
		MatchPolicy:   ptr.To(admissionregistrationv1.Equivalent),
		// What later webhooks add does not concern the steps; the reference is not called again either.
		ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
		// The places that subsets give to pods are recorded, unless the request is a dry run.
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          &seconds,
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
		NamespaceSelector:       Sent(in.Namespace),
		ObjectSelector:          &metav1.LabelSelector{},
		Rules: []admissionregistrationv1.RuleWithOperations{
			podRule("pods", admissionregistrationv1.Create),
		},
	}
}

func podRule(
	resource string, operations ...admissionregistrationv1.OperationType,
) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups:   []string{corev1.GroupName},
		APIVersions: []string{"v1"},
		Resources:   []string{resource},
		Scope:       ptr.To(admissionregistrationv1.NamespacedScope),
	}}
}

// onward returns a client whose path ends in a suffix.
func onward(c admissionregistrationv1.WebhookClientConfig, suffix string) admissionregistrationv1.WebhookClientConfig {
	c = *c.DeepCopy()
	switch {
	case suffix == "":
	case c.Service != nil:
		c.Service.Path = ptr.To(ptr.Deref(c.Service.Path, "") + suffix)
	case c.URL != nil:
		c.URL = ptr.To(*c.URL + suffix)
	}
	return c
}

// Sent returns the selector of the namespaces whose pods API servers send to the webhook, if anything concerns them.
// own is the namespace of the manager.
func Sent(own string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		{
			Key:      corev1.LabelMetadataName,
			Operator: metav1.LabelSelectorOpNotIn,
			Values:   sorted([]string{metav1.NamespaceSystem, own}),
		},
	}}
}

// within restricts an entry to namespaces. It reports false, and restricts nothing, if they are too many.
func within(e *entry, namespaces []string) bool {
	letters := 0
	for _, name := range namespaces {
		letters += len(name) + len(`"",`)
	}
	if letters > maxNamespaceLetters {
		return false
	}
	e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions,
		metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
		})
	return true
}

// nameOf returns the name of the entry of a group. It is short, because the names of entries are in metrics and errors.
func nameOf(kind, id string) string {
	if id == "" {
		return kind + nameEnd
	}
	sum := sha256.Sum256([]byte(id))
	return kind + "-" + hex.EncodeToString(sum[:4]) + nameEnd
}

// ours matches the names of entries, also of earlier versions.
var ours = regexp.MustCompile(`^(mpod(-open)?(-[0-9a-f]{8}|-namespaces)?|` +
	`(vpod|vpodeviction)(-open|-exempt|-unstamped|-unready)?)(-part-[0-9]{1,2})?\.kb\.io$`)

// Ours reports whether an entry has a name as Plan, Disruptions or Provisional give them.
func Ours(name string) bool { return ours.MatchString(name) || IsProvisional(name) }

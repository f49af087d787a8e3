package protection

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/protection"
)

// The names of the policies and of their bindings.
const (
	AlwaysName   = "kruisekit-deletion-always"
	ReplicasName = "kruisekit-deletion-replicas"
	LabelName    = "kruisekit-deletion-label"
)

const (
	always    = kruise.DeletionProtectionTypeAlways
	cascading = kruise.DeletionProtectionTypeCascading
)

// Policy is a policy with its binding.
type Policy struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
}

// Policies returns the policies that refuse deletions, but those of exempt users.
func Policies(exempt ...string) []Policy {
	return []Policy{refusingAlways(exempt), refusingReplicas(exempt)}
}

func refusingAlways(exempt []string) Policy {
	p := refusing(AlwaysName, always, protection.Kinds(), exempt)
	p.Policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "variables.following", Message: protection.Refusal(always), Reason: ptr.To(metav1.StatusReasonForbidden),
	}}
	return p
}

func refusingReplicas(exempt []string) Policy {
	p := refusing(ReplicasName, cascading, workloads(), exempt)
	p.Policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "variables.following || !has(oldObject.spec) || !has(oldObject.spec.replicas) || " +
			"oldObject.spec.replicas <= 0",
		Message:           protection.Refusal(cascading),
		MessageExpression: text(protection.Refusal(cascading)+", replicas ") + " + string(oldObject.spec.replicas) + '>0'",
		Reason:            ptr.To(metav1.StatusReasonForbidden),
	}}
	return p
}

// refusing is a policy for objects of some kinds with a value of the label. Its variable following is true for a
// deletion that follows from one that was judged.
func refusing(name string, value kruise.DeletionProtectionType, kinds []protection.Kind, exempt []string) Policy {
	p := policy(name, kinds, admissionv1.Delete)
	p.Policy.Spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "protected", Expression: labelled("oldObject", []string{string(value)})},
		{Name: "active", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
		{Name: "not-exempt", Expression: "!(request.userInfo.username in " + list(exempt) + ")"},
	}
	p.Policy.Spec.Variables = []admissionv1.Variable{
		{
			Name:       "namespaceTerminating",
			Expression: "namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)",
		},
		{Name: "ownerDeleted", Expression: ownerDeleted()},
		{Name: "following", Expression: "variables.namespaceTerminating || variables.ownerDeleted"},
	}
	return p
}

// ownerDeleted is true where the garbage collector deletes a dependent of a workload.
func ownerDeleted() string {
	var owners []string
	for _, k := range workloads() {
		owners = append(owners, list([]string{k.Group + "/", k.Kind}))
	}
	return "request.userInfo.username in " + list(protection.GarbageCollectors()) +
		" && has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(o, " +
		"has(o.controller) && o.controller && [" +
		strings.Join(owners, ", ") + "].exists(k, o.apiVersion.startsWith(k[0]) && o.kind == k[1]))"
}

// Label returns the policy that warns of values of the label that protect nothing.
func Label() Policy {
	p := policy(LabelName, protection.Kinds(), admissionv1.Create, admissionv1.Update)
	p.Binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
	p.Policy.Spec.FailurePolicy = ptr.To(admissionv1.Ignore)
	p.Policy.Spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "labelled", Expression: carries("object")},
		{
			Name: "changed",
			Expression: "oldObject == null || !(" + carries("oldObject") + ") || " + value("oldObject") + " != " +
				value("object"),
		},
	}
	at := "metadata.labels[" + kruise.DeletionProtectionKey + "]: Invalid value: \""
	add := func(applies string, values []string, k protection.Kind) {
		p.Policy.Spec.Validations = append(p.Policy.Spec.Validations, admissionv1.Validation{
			Expression:        fmt.Sprintf("!(%s) || %s in %s", applies, value("object"), list(values)),
			Message:           "metadata.labels[" + kruise.DeletionProtectionKey + "]: " + k.Supported(),
			MessageExpression: text(at) + " + " + value("object") + " + " + text(`": `+k.Supported()),
		})
	}
	var others []string
	for _, k := range protection.Kinds() {
		if len(k.Dependents) == 0 {
			is := fmt.Sprintf("request.kind.group == %s && request.kind.kind == %s", text(k.Group), text(k.Kind))
			add(is, []string{string(always)}, k)
			others = append(others, is)
		}
	}
	add("!("+strings.Join(others, " || ")+")", []string{string(always), string(cascading)}, workloads()[0])
	return p
}

// policy is one for labelled objects of some kinds, with its binding.
func policy(name string, kinds []protection.Kind, operations ...admissionv1.OperationType) Policy {
	match := &admissionv1.MatchResources{ObjectSelector: selector()}
	for _, k := range kinds {
		match.ResourceRules = append(match.ResourceRules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: rule(k, operations...),
		})
	}
	return Policy{
		Policy: &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionv1.Fail), MatchConstraints: match,
			},
		},
		Binding: &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: metav1.TypeMeta{
				APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding",
			},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit},
			},
		},
	}
}

func rule(k protection.Kind, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{k.Group}, APIVersions: k.Versions, Resources: []string{k.Resource}},
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: kruise.DeletionProtectionKey, Operator: metav1.LabelSelectorOpExists},
	}}
}

func workloads() []protection.Kind {
	var all []protection.Kind
	for _, k := range protection.Kinds() {
		if k.Workload() {
			all = append(all, k)
		}
	}
	return all
}

// carries is true where an object has the label.
func carries(object string) string {
	return fmt.Sprintf("has(%s.metadata.labels) && %s in %s.metadata.labels",
		object, text(kruise.DeletionProtectionKey), object)
}

// value is that of the label of an object that carries the label.
func value(object string) string {
	return fmt.Sprintf("%s.metadata.labels[%s]", object, text(kruise.DeletionProtectionKey))
}

// labelled is true where an object has the label with one of the values.
func labelled(object string, values []string) string {
	return carries(object) + " && " + value(object) + " in " + list(values)
}

// text is a string in an expression.
func text(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
}

func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = text(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

package pub

import (
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/scale"
)

// Validate returns what is invalid in a budget. Others are the budgets of the namespace, among which the budget itself
// does not count; the first conflict is reported.
func Validate(b *policyv1beta1.PodUnavailableBudget, others []*policyv1beta1.PodUnavailableBudget) field.ErrorList {
	at := field.NewPath("spec")
	faults := checkTotalReplicas(b)
	faults = append(faults, checkPods(&b.Spec, at)...)
	faults = append(faults, checkAmounts(&b.Spec, at)...)
	for i, o := range b.Spec.ProtectOperations {
		if !slices.Contains(operations(), o) {
			faults = append(faults, field.NotSupported(at.Child("protectOperations").Index(i), o, operations()))
		}
	}
	if p := b.Spec.PodGroupPolicy; p != nil {
		faults = append(faults, checkGroups(p, at.Child("podGroupPolicy"))...)
	}
	if s := b.Spec.IgnoredPodSelector; s != nil {
		faults = append(faults, checkSelector(s, at.Child("ignoredPodSelector"))...)
	}
	if fault := checkOthers(b, others); fault != nil {
		faults = append(faults, fault)
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden: which pods a budget guards cannot change.
func ValidateUpdate(b, stored *policyv1beta1.PodUnavailableBudget) field.ErrorList {
	if apiequality.Semantic.DeepEqual(b.Spec.Selector, stored.Spec.Selector) &&
		apiequality.Semantic.DeepEqual(b.Spec.TargetReference, stored.Spec.TargetReference) {
		return nil
	}
	return field.ErrorList{field.Required(podsPath(field.NewPath("spec")), "selector and targetRef cannot be modified")}
}

// ValidateOlder returns what is invalid in the annotations that v1alpha1 has in place of fields. The conversion leaves
// out what is invalid.
func ValidateOlder(annotations map[string]string) field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("metadata", "annotations")
	for item := range strings.SplitSeq(annotations[policyv1beta1.PubProtectOperationAnnotation], ",") {
		if o := Operation(strings.TrimSpace(item)); o != "" && !slices.Contains(operations(), o) {
			faults = append(faults, field.NotSupported(at.Key(policyv1beta1.PubProtectOperationAnnotation), o, operations()))
		}
	}
	if text := annotations[policyv1beta1.PubProtectTotalReplicasAnnotation]; text != "" {
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			faults = append(faults,
				field.Invalid(at.Key(policyv1beta1.PubProtectTotalReplicasAnnotation), text, "must be a number of 32 bits"))
		}
	}
	return faults
}

// podsPath is the path of both fields, one of which is needed.
func podsPath(at *field.Path) *field.Path { return at.Child("selector, targetRef") }

func checkTotalReplicas(b *policyv1beta1.PodUnavailableBudget) field.ErrorList {
	text, ok := b.Annotations[policyv1beta1.PubProtectTotalReplicasAnnotation]
	if !ok {
		return nil
	}
	at := field.NewPath("metadata", "annotations").Key(policyv1beta1.PubProtectTotalReplicasAnnotation)
	if _, err := strconv.ParseInt(text, 10, 32); err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be a number of 32 bits")}
	}
	if total := b.Spec.ProtectTotalReplicas; total != nil && strconv.Itoa(int(*total)) != text {
		return field.ErrorList{field.Invalid(at, text, "must equal spec.protectTotalReplicas")}
	}
	return nil
}

func checkPods(spec *policyv1beta1.PodUnavailableBudgetSpec, at *field.Path) field.ErrorList {
	target, selector := spec.TargetReference, spec.Selector
	switch {
	case target == nil && selector == nil:
		return field.ErrorList{field.Required(podsPath(at), "no selector or targetRef defined in PodUnavailableBudget")}
	case target != nil && selector != nil:
		return field.ErrorList{field.Required(podsPath(at), "selector and targetRef are mutually exclusive")}
	case selector != nil:
		return checkSelector(selector, at.Child("selector"))
	case target.APIVersion == "" || target.Kind == "" || target.Name == "":
		return field.ErrorList{field.Invalid(at.Child("targetRef"), target, "must have apiVersion, kind and name")}
	}
	if _, err := groupOf(target.APIVersion); err != nil {
		return field.ErrorList{field.Invalid(at.Child("targetRef"), target, err.Error())}
	}
	return nil
}

func checkGroups(p *policyv1beta1.PodGroupPolicy, at *field.Path) field.ErrorList {
	faults := metav1validation.ValidateLabelName(p.GroupLabelKey, at.Child("groupLabelKey"))
	if p.GroupSize < 1 {
		faults = append(faults, field.Invalid(at.Child("groupSize"), p.GroupSize, "must be at least 1"))
	}
	return faults
}

func checkSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	faults := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		faults = append(faults, field.Invalid(at, s, "must not be empty"))
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil && len(faults) == 0 {
		faults = append(faults, field.Invalid(at, s, err.Error()))
	}
	return faults
}

func checkAmounts(spec *policyv1beta1.PodUnavailableBudgetSpec, at *field.Path) field.ErrorList {
	both := at.Child("maxUnavailable, minAvailable")
	switch {
	case spec.MaxUnavailable == nil && spec.MinAvailable == nil:
		return field.ErrorList{field.Required(both, "no maxUnavailable or minAvailable defined in PodUnavailableBudget")}
	case spec.MaxUnavailable != nil && spec.MinAvailable != nil:
		return field.ErrorList{field.Required(both, "maxUnavailable and minAvailable are mutually exclusive")}
	case spec.MaxUnavailable != nil:
		return checkAmount(*spec.MaxUnavailable, at.Child("maxUnavailable"))
	}
	return checkAmount(*spec.MinAvailable, at.Child("minAvailable"))
}

func checkAmount(v intstr.IntOrString, at *field.Path) field.ErrorList {
	if fault := amountFault(v); fault != "" {
		return field.ErrorList{field.Invalid(at, v.String(), fault)}
	}
	if v.Type != intstr.String {
		return nil
	}
	if faults := validation.IsValidPercent(v.StrVal); len(faults) > 0 {
		return field.ErrorList{field.Invalid(at, v.String(), "must be a number or a percentage: "+strings.Join(faults, ", "))}
	}
	const all = 100
	if n, err := scale.Amount(v, all, scale.RoundUp); err == nil && n > all {
		return field.ErrorList{field.Invalid(at, v.String(), "must not be greater than 100%")}
	}
	return nil
}

// checkOthers returns the first conflict with another budget of the namespace.
func checkOthers(b *policyv1beta1.PodUnavailableBudget, others []*policyv1beta1.PodUnavailableBudget) *field.Error {
	at, spec := field.NewPath("spec"), &b.Spec
	for _, other := range others {
		if other.Name == b.Name {
			continue
		}
		switch o := &other.Spec; {
		case spec.TargetReference != nil && o.TargetReference != nil:
			if sameTarget(spec.TargetReference, o.TargetReference) {
				return field.Invalid(at.Child("targetReference"), spec.TargetReference,
					"pod unavailable budget "+other.Name+" has the same target")
			}
		case spec.Selector != nil && o.Selector != nil:
			if Overlap(spec.Selector, o.Selector) {
				return field.Invalid(at.Child("selector"), spec.Selector,
					"pod unavailable budget "+other.Name+" has an overlapping selector")
			}
		}
	}
	return nil
}

func sameTarget(a, b *policyv1beta1.TargetReference) bool {
	x, err := groupOf(a.APIVersion)
	y, failed := groupOf(b.APIVersion)
	return err == nil && failed == nil && x == y && a.Kind == b.Kind && a.Name == b.Name
}

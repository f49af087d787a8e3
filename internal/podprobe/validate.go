package podprobe

import (
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// Validate returns what is invalid in a marker.
func Validate(m *v1alpha1.PodProbeMarker) field.ErrorList {
	at := field.NewPath("spec")
	faults := checkSelector(m, at.Child("selector"))
	if len(m.Spec.Probes) == 0 {
		faults = append(faults, field.Required(at.Child("probes"), "must have a probe"))
	}
	names, conditions := map[string]bool{}, map[string]bool{}
	for i := range m.Spec.Probes {
		p, at := &m.Spec.Probes[i], at.Child("probes").Index(i)
		faults = append(faults, checkProbe(p, at)...)
		if p.Name != "" && names[p.Name] {
			faults = append(faults, field.Duplicate(at.Child("name"), p.Name))
		}
		if p.PodConditionType != "" && conditions[p.PodConditionType] {
			faults = append(faults, field.Duplicate(at.Child("podConditionType"), p.PodConditionType))
		}
		names[p.Name], conditions[p.PodConditionType] = true, true
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden.
func ValidateUpdate(m, stored *v1alpha1.PodProbeMarker) field.ErrorList {
	if apiequality.Semantic.DeepEqual(m.Spec.Selector, stored.Spec.Selector) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), m.Spec.Selector, "must not change")}
}

// Warnings returns what is valid in a marker, and has no effect.
func Warnings(m *v1alpha1.PodProbeMarker) []string {
	var all []string
	for i := range m.Spec.Probes {
		if is := m.Spec.Probes[i].PodConditionType; IsReserved(is) {
			path := field.NewPath("spec", "probes").Index(i).Child("podConditionType")
			all = append(all,
				path.String()+": condition "+is+" is not written, because it belongs to the kubelet or to a workload")
		}
	}
	return all
}

func checkSelector(m *v1alpha1.PodProbeMarker, at *field.Path) field.ErrorList {
	s := m.Spec.Selector
	if s == nil {
		return field.ErrorList{field.Required(at, "must have a selector")}
	}
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(at, s, "must not be empty")}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

func checkProbe(p *v1alpha1.PodContainerProbe, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	switch {
	case p.Name == "":
		faults = append(faults, field.Required(at.Child("name"), "must not be empty"))
	case strings.Contains(p.Name, separator):
		faults = append(faults, field.Invalid(at.Child("name"), p.Name, "must not contain "+separator))
	case slices.Contains(reserved(), p.Name):
		faults = append(faults, field.Invalid(at.Child("name"), p.Name, "must not be the name of a condition of pods"))
	}
	if p.ContainerName == "" {
		faults = append(faults, field.Required(at.Child("containerName"), "must not be empty"))
	}
	if p.PodConditionType == "" && len(p.MarkerPolicy) == 0 {
		faults = append(faults, field.Required(at.Child("podConditionType"), "must not be empty where markerPolicy is"))
	}
	if p.PodConditionType != "" {
		faults = append(faults, metav1validation.ValidateLabelName(p.PodConditionType, at.Child("podConditionType"))...)
	}
	faults = append(faults, checkHandler(&p.Probe.Probe, at.Child("probe"))...)
	return append(faults, checkPolicies(p.MarkerPolicy, at.Child("markerPolicy"))...)
}

func checkHandler(p *corev1.Probe, at *field.Path) field.ErrorList {
	handlers := []struct {
		name  string
		has   bool
		check func(*field.Path) field.ErrorList
	}{
		{"exec", p.Exec != nil, func(at *field.Path) field.ErrorList { return checkExec(p.Exec, at) }},
		{"httpGet", p.HTTPGet != nil, func(at *field.Path) field.ErrorList { return checkHTTP(p.HTTPGet, at) }},
		{"tcpSocket", p.TCPSocket != nil, func(at *field.Path) field.ErrorList { return checkTCP(p.TCPSocket, at) }},
		{"grpc", p.GRPC != nil, func(at *field.Path) field.ErrorList { return checkNumber(p.GRPC.Port, at.Child("port")) }},
	}
	var faults field.ErrorList
	found := false
	for _, h := range handlers {
		switch {
		case !h.has:
		case found:
			faults = append(faults, field.Forbidden(at.Child(h.name), "must not be set beside another handler"))
		default:
			found = true
			faults = append(faults, h.check(at.Child(h.name))...)
		}
	}
	if !found {
		faults = append(faults, field.Required(at, "must have exec, httpGet, tcpSocket or grpc"))
	}
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds},
		{"timeoutSeconds", p.TimeoutSeconds},
		{"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold},
		{"failureThreshold", p.FailureThreshold},
	} {
		faults = append(faults, apivalidation.ValidateNonnegativeField(int64(n.value), at.Child(n.name))...)
	}
	return faults
}

func checkExec(e *corev1.ExecAction, at *field.Path) field.ErrorList {
	if len(e.Command) == 0 {
		return field.ErrorList{field.Required(at.Child("command"), "must not be empty")}
	}
	return nil
}

func checkTCP(t *corev1.TCPSocketAction, at *field.Path) field.ErrorList {
	return append(checkHost(t.Host, at.Child("host")), checkPort(t.Port, at.Child("port"))...)
}

func checkHTTP(h *corev1.HTTPGetAction, at *field.Path) field.ErrorList {
	faults := append(checkHost(h.Host, at.Child("host")), checkPort(h.Port, at.Child("port"))...)
	if h.Path == "" {
		faults = append(faults, field.Required(at.Child("path"), "must not be empty"))
	} else if _, err := url.Parse(h.Path); err != nil {
		faults = append(faults, field.Invalid(at.Child("path"), h.Path, "must be a path with or without a query"))
	}
	if schemes := []corev1.URIScheme{
		corev1.URISchemeHTTP, corev1.URISchemeHTTPS,
	}; h.Scheme != "" && !slices.Contains(schemes, h.Scheme) {
		faults = append(faults, field.NotSupported(at.Child("scheme"), h.Scheme, schemes))
	}
	for i, header := range h.HTTPHeaders {
		for _, fault := range validation.IsHTTPHeaderName(header.Name) {
			faults = append(faults, field.Invalid(at.Child("httpHeaders").Index(i).Child("name"), header.Name, fault))
		}
	}
	return faults
}

func checkHost(host string, at *field.Path) field.ErrorList {
	if host == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, "must be empty, because a probe asks its pod")}
}

func checkPort(port intstr.IntOrString, at *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return checkNumber(port.IntVal, at)
	}
	var faults field.ErrorList
	for _, fault := range validation.IsValidPortName(port.StrVal) {
		faults = append(faults, field.Invalid(at, port.StrVal, fault))
	}
	return faults
}

func checkNumber(port int32, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, fault := range validation.IsValidPortNum(int(port)) {
		faults = append(faults, field.Invalid(at, port, fault))
	}
	return faults
}

func checkPolicies(policies []v1alpha1.ProbeMarkerPolicy, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	states := map[v1alpha1.ProbeState]bool{}
	for i := range policies {
		p, at := &policies[i], at.Index(i)
		switch {
		case p.State != v1alpha1.ProbeSucceeded && p.State != v1alpha1.ProbeFailed:
			faults = append(faults, field.Required(at.Child("state"), "must be Succeeded or Failed"))
		case states[p.State]:
			faults = append(faults, field.Duplicate(at.Child("state"), p.State))
		}
		states[p.State] = true
		if len(p.Labels)+len(p.Annotations) == 0 {
			faults = append(faults, field.Required(at.Child("labels"), "must not be empty where annotations are"))
		}
		faults = append(faults, metav1validation.ValidateLabels(p.Labels, at.Child("labels"))...)
		faults = append(faults, apivalidation.ValidateAnnotations(p.Annotations, at.Child("annotations"))...)
	}
	return faults
}

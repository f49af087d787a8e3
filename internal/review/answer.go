package review

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/write"
)

// maxFaults bounds the faults of an answer: an object has room for 400,000, and each costs time. andMore stands for the
// others.
const (
	maxFaults = 100
	andMore   = " (and more)"
)

// First returns the first faults, and what to say of the others.
func First(faults field.ErrorList) (first field.ErrorList, rest string) {
	if len(faults) > maxFaults {
		return faults[:maxFaults], andMore
	}
	return faults, ""
}

// Patched allows an object with a patch.
func Patched(patch []write.Op) admission.Response {
	answer := admission.Allowed("")
	if len(patch) == 0 {
		return answer
	}
	data, err := write.Encode(patch)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	answer.Patch, answer.PatchType = data, &kind
	return answer
}

// BadRequest is 400, with the field if it is known.
func BadRequest(err error) admission.Response {
	status := metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: err.Error()}
	var wrong *TypeError
	if errors.As(err, &wrong) {
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeTypeInvalid, Field: wrong.Path, Message: wrong.Error(),
		}}}
	}
	return Denied(status)
}

// Forbidden is 403.
func Forbidden(message string) admission.Response {
	return Denied(metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message})
}

// Rejected has the first 100 faults as text, and each as a cause. The code is 400 for what is invalid, 403 for what
// must not be changed.
func Rejected(code int32, faults field.ErrorList) admission.Response {
	faults, rest := First(faults)
	texts := make([]string, len(faults))
	causes := make([]metav1.StatusCause, len(faults))
	for i, fault := range faults {
		texts[i] = fault.Error()
		causes[i] = metav1.StatusCause{Type: metav1.CauseType(fault.Type), Message: fault.ErrorBody(), Field: fault.Field}
	}
	reason := metav1.StatusReasonBadRequest
	if code == http.StatusForbidden {
		reason = metav1.StatusReasonForbidden
	}
	return Denied(metav1.Status{
		Code: code, Reason: reason, Message: strings.Join(texts, "; ") + rest, Details: &metav1.StatusDetails{Causes: causes},
	})
}

// Unknown returns the warnings of unknown fields, in the words of API servers.
func Unknown(paths []string) []string {
	warnings := make([]string, len(paths))
	for i, path := range paths {
		warnings[i] = fmt.Sprintf("unknown field %q", path)
	}
	return warnings
}

// Newer returns the warnings of fields that the types lack, with what a change of one does.
func Newer(paths []string, change string) []string {
	warnings := make([]string, len(paths))
	for i, path := range paths {
		warnings[i] = fmt.Sprintf("field %q is newer than this version of kruisekit: it is kept, and a change %s",
			path, change)
	}
	return warnings
}

// Missing returns the warnings of what a pod template lacks, and a pod webhook may add. Those beyond the first 100 are
// left out.
func Missing(faults field.ErrorList) []string {
	first, _ := First(faults)
	warnings := make([]string, len(first))
	for i, fault := range first {
		warnings[i] = fault.Error() + ": no pod is created unless a webhook adds it"
	}
	return warnings
}

// Denied rejects an object with a status.
func Denied(status metav1.Status) admission.Response {
	status.Status = metav1.StatusFailure
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// Added returns the faults that the stored object did not have, and those that it had. The latter are accepted: such an
// object could not be repaired step by step, or lose its finalizers.
func Added(faults, had field.ErrorList) (added, borne field.ErrorList) {
	for _, fault := range faults {
		if slices.ContainsFunc(had, func(h *field.Error) bool { return noWorse(fault, h) }) {
			borne = append(borne, fault)
			continue
		}
		added = append(added, fault)
	}
	return added, borne
}

// noWorse reports whether a fault is one that the stored object has, or less of it.
func noWorse(fault, had *field.Error) bool {
	if fault.Type == field.ErrorTypeTooMany && had.Type == fault.Type && had.Field == fault.Field {
		now, ok := fault.BadValue.(int)
		before, same := had.BadValue.(int)
		return ok && same && now <= before
	}
	return reflect.DeepEqual(fault, had)
}

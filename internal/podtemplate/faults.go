package podtemplate

import (
	"errors"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faultsIn returns the faults of the template in an error; none if the error is about another object.
func faultsIn(err error, t Template, m mocks) field.ErrorList {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return nil
	}
	status := api.Status()
	switch {
	case IsDenial(err):
		return nil
	case apierrors.IsInvalid(err):
		if status.Details == nil || len(status.Details.Causes) == 0 {
			return field.ErrorList{fault(field.ErrorTypeInvalid, t.Path.String(), status.Message)}
		}
		faults := make(field.ErrorList, 0, len(status.Details.Causes))
		for _, cause := range status.Details.Causes {
			faults = append(faults, faultOf(cause, t, m))
		}
		return faults
	case apierrors.IsBadRequest(err) && strings.Contains(status.Message, "cannot be handled as"):
		// A value of a wrong type, at the first of which the API server stops.
		return field.ErrorList{fault(field.ErrorTypeTypeInvalid, t.Path.String(), status.Message)}
	}
	return nil
}

// IsDenial reports whether a policy or a webhook of the cluster denied the request, with whatever reason, and not the
// validation of the API server.
func IsDenial(err error) bool {
	text := err.Error()
	return strings.Contains(text, "ValidatingAdmissionPolicy '") ||
		strings.Contains(text, "admission webhook ") && strings.Contains(text, "denied the request")
}

// unknownIn returns the paths of the unknown fields that an error is about, if it is.
func unknownIn(err error, t Template, m mocks) []string {
	const marker, each = "strict decoding error: ", "unknown field "
	var paths []string
	_, rest, ok := strings.Cut(err.Error(), marker)
	for ok {
		if _, rest, ok = strings.Cut(rest, each); !ok {
			break
		}
		quoted, malformed := strconv.QuotedPrefix(rest)
		if malformed != nil {
			continue
		}
		rest = rest[len(quoted):]
		if path, malformed := strconv.Unquote(quoted); malformed == nil {
			paths = append(paths, pathOf(path, t, m))
		}
	}
	return paths
}

func faultOf(cause metav1.StatusCause, t Template, m mocks) *field.Error {
	kind := field.ErrorType(cause.Type)
	if kind == "" {
		kind = field.ErrorTypeInvalid
	}
	return fault(kind, pathOf(cause.Field, t, m), cause.Message)
}

// fault returns an error with the message of a cause, which starts with the text of its type already.
func fault(kind field.ErrorType, path, message string) *field.Error {
	e := &field.Error{Type: kind, Field: path, BadValue: field.OmitValueType{}}
	detail, ok := strings.CutPrefix(message, kind.String())
	if ok {
		detail = strings.TrimPrefix(detail, ": ")
	}
	e.Detail = detail
	return e
}

// pathOf returns the path in the workload of a path in a PodTemplate.
func pathOf(path string, t Template, m mocks) string {
	below, ok := strings.CutPrefix(path, "template")
	if !ok || below != "" && below[0] != '.' && below[0] != '[' {
		return t.Path.String()
	}
	if i, ok := mockAt(below); ok && i >= m.first && i-m.first < len(m.paths) {
		return m.paths[i-m.first]
	}
	return t.Path.String() + below
}

// mockAt returns the index of the volume that a path below the template leads to.
func mockAt(below string) (int, bool) {
	rest, ok := strings.CutPrefix(below, ".spec.volumes[")
	if !ok {
		return 0, false
	}
	index, _, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(index)
	return i, err == nil
}

package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"
)

// Concerns reports whether a request creates or updates an object itself, and not a subresource.
func Concerns(req admission.Request) bool {
	return req.SubResource == "" && (req.Operation == admissionv1.Create || req.Operation == admissionv1.Update)
}

// IsDeleting reports whether a request updates an object that is being deleted, so that its finalizers can be removed.
// It ignores what is invalid elsewhere in the object.
func IsDeleting(req admission.Request) bool {
	if req.Operation != admissionv1.Update {
		return false
	}
	var stored struct {
		Metadata struct {
			DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	return Unmarshal(req.OldObject.Raw, &stored) == nil && stored.Metadata.DeletionTimestamp != nil
}

// TypeError is a value of a wrong type at a known place.
type TypeError struct {
	Path, Found, Wanted string
}

// Error names the place.
func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: a %s where %s is wanted", e.Path, e.Found, e.Wanted)
}

// Unmarshal is case-sensitive, as API servers are. The error wraps a *TypeError where one value is to blame.
func Unmarshal(raw []byte, into any) error {
	return decoded(raw, utiljson.Unmarshal(raw, into))
}

// UnmarshalObject is Unmarshal of a review, and reports whether its object has fields that their types lack.
func UnmarshalObject(raw []byte, into any) (unknownFields bool, err error) {
	unknown, err := kjson.UnmarshalStrict(raw, into, kjson.DisallowUnknownFields)
	return slices.ContainsFunc(unknown, func(err error) bool {
		var field kjson.FieldError
		return errors.As(err, &field) && strings.HasPrefix(field.FieldPath(), "request.object.")
	}), decoded(raw, err)
}

// decoded returns the error of a decoder with its context.
func decoded(raw []byte, err error) error {
	if len(raw) == 0 {
		return errors.New("decode object: the request has none")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		err = &TypeError{Path: pathOf(wrong.Field), Found: wrong.Value, Wanted: wrong.Type.String()}
	}
	if err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	return nil
}

// pathOf drops the Go names of embedded structs, which newer decoders add to a path. Names of fields in JSON begin with
// a lower-case letter.
func pathOf(field string) string {
	names := strings.Split(field, ".")
	return strings.Join(slices.DeleteFunc(names, func(name string) bool {
		return name != "" && name[0] >= 'A' && name[0] <= 'Z'
	}), ".")
}

// Decode returns an object as it was sent.
func Decode(raw []byte) (map[string]any, error) {
	var content map[string]any
	if err := Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if content == nil {
		return nil, errors.New("decode object: null is no object")
	}
	return content, nil
}

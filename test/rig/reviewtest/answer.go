package reviewtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Refused wants an answer of a webhook with a code, and with a cause at each of the paths, which its text names as
// well.
func Refused(t *testing.T, err error, code int32, paths ...string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != code || !strings.Contains(err.Error(), "denied the request: ") {
		t.Errorf("want a refusal by a webhook with %d at %q, got %v", code, paths, err)
		return
	}
	var at []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			at = append(at, cause.Field)
		}
	}
	if !slices.Equal(at, paths) {
		t.Errorf("the causes are at %q, want %q: %v", at, paths, err)
	}
	if want := reasonOf(code); status.Status().Reason != want {
		t.Errorf("the reason is %q, want %q", status.Status().Reason, want)
	}
	for _, path := range paths {
		if !strings.Contains(err.Error(), path+": ") {
			t.Errorf("the text does not name %s: %v", path, err)
		}
	}
}

// Says returns an error unless err is a rejection that names the path and the judge. With an empty path, err must be
// nil.
func Says(err error, judge, path string) error {
	switch {
	case path == "" && err == nil:
		return nil
	case path != "" && err != nil && strings.Contains(err.Error(), path) && strings.Contains(err.Error(), judge):
		return nil
	case err == nil:
		return errors.New("no error rejects " + path)
	}
	return fmt.Errorf("want %q by %q: %w", path, judge, err)
}

// Field of an object; nil where there is none.
func Field(o *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value
}

func reasonOf(code int32) metav1.StatusReason {
	switch code {
	case 403:
		return metav1.StatusReasonForbidden
	case 422:
		return metav1.StatusReasonInvalid
	}
	return metav1.StatusReasonBadRequest
}

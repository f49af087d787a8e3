package reviewtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refused wants an answer of a webhook with a code, and with a cause at each of the paths, which its text names as well.
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

func reasonOf(code int32) metav1.StatusReason {
	switch code {
	case 403:
		return metav1.StatusReasonForbidden
	case 422:
		return metav1.StatusReasonInvalid
	}
	return metav1.StatusReasonBadRequest
}

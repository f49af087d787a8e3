package cloneset

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/review"
)

// CheckDelete returns why a CloneSet is protected from deletion; empty if it is not, as a set that is being deleted already.
func CheckDelete(set *appsv1beta1.CloneSet) string {
	if set.DeletionTimestamp != nil {
		return ""
	}
	value := set.Labels[kruise.DeletionProtectionKey]
	reason := fmt.Sprintf("%s for %s=%s", kruise.DeletionProtectionMessage, kruise.DeletionProtectionKey, value)
	switch kruise.DeletionProtectionType(value) {
	case kruise.DeletionProtectionTypeAlways:
		return reason
	case kruise.DeletionProtectionTypeCascading:
		if n := set.Spec.Replicas; n != nil && *n > 0 {
			return fmt.Sprintf("%s, replicas %d>0", reason, *n)
		}
	}
	return ""
}

// validateDelete looks at the few fields that matter, which both versions have, so that an object which is odd elsewhere
// can still be deleted.
func (w *Webhooks) validateDelete(req admission.Request) admission.Response {
	if _, err := versionOf(req); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if len(req.OldObject.Raw) == 0 {
		return admission.Allowed("")
	}
	var stored struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Replicas *int32 `json:"replicas"`
		} `json:"spec"`
	}
	if err := review.Unmarshal(req.OldObject.Raw, &stored); err != nil {
		return review.BadRequest(err)
	}
	if !w.options.DeletionProtection {
		return admission.Allowed("")
	}
	set := &appsv1beta1.CloneSet{ObjectMeta: stored.ObjectMeta, Spec: appsv1beta1.CloneSetSpec{Replicas: stored.Spec.Replicas}}
	if reason := CheckDelete(set); reason != "" {
		// The code alone means that it is forbidden, as clients expect.
		return review.Denied(metav1.Status{Code: http.StatusForbidden, Message: reason})
	}
	return admission.Allowed("")
}

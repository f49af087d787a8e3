package reviewtest

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Early is the name of objects that came before the webhook.
const Early = "early"

// ExceptEarly is a webhook that does not review the creation of early objects, so that a test can store faults.
func ExceptEarly(review admission.HandlerFunc) *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		if req.Name == Early && req.Operation == admissionv1.Create {
			return admission.Allowed("")
		}
		return review(ctx, req)
	})}
}

// Leave deletes an object, which then loses its finalizers.
func (g *Ground) Leave(t *testing.T, o client.Object) {
	t.Helper()
	deleted := o.DeepCopyObject().(client.Object)
	if err := g.Client.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Patch(t.Context(), deleted, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Errorf("remove the finalizers of an object that is being deleted: %v", err)
	}
}

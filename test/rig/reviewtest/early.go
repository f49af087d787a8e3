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
	handle := func(ctx context.Context, req admission.Request) admission.Response {
		if req.Name == Early && req.Operation == admissionv1.Create {
			return admission.Allowed("")
		}
		return review(ctx, req)
	}
	return &admission.Webhook{Handler: admission.HandlerFunc(handle)}
}

// Leave deletes an object, which then loses its finalizers. An object that does not exist is no error.
func (g *Ground) Leave(t *testing.T, o client.Object) {
	t.Helper()
	deleted := o.DeepCopyObject().(client.Object)
	ctx := context.WithoutCancel(t.Context()) // also after the test
	if err := client.IgnoreNotFound(g.Client.Delete(ctx, deleted)); err != nil {
		t.Fatal(err)
	}
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(g.Client.Patch(ctx, deleted, release)); err != nil {
		t.Errorf("remove the finalizers of an object that is being deleted: %v", err)
	}
}

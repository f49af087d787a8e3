package cloneset_test

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// spec is that of a CloneSet of one container, in either version, changed by a merge patch.
func spec(t testing.TB, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"main","image":"app:1"}]}}}`
	return plaintest.Patched(t, plain, patch)
}

// plainServer is an API server that knows one default of pod templates, and one pod.
func plainServer(made *int, fail error) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			*made++
			if fail != nil {
				return fail
			}
			template := obj.(*unstructured.Unstructured).Object["template"].(map[string]any)
			if pod, ok := template["spec"].(map[string]any); ok && pod["dnsPolicy"] == nil {
				pod["dnsPolicy"] = "ClusterFirst"
			}
			return nil
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			*made++
			if fail != nil {
				return fail
			}
			if key.Name != "mine" {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
			}
			yes := true
			obj.SetOwnerReferences([]metav1.OwnerReference{{UID: "1", Controller: &yes}})
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			*made++
			yes := true
			for i := range 17 {
				pod := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)}}
				pod.OwnerReferences = []metav1.OwnerReference{{UID: "1", Controller: &yes}}
				pods := list.(*metav1.PartialObjectMetadataList)
				pods.Items = append(pods.Items, pod)
			}
			return fail
		},
	})
}

// newWebhooks gives webhooks in front of a plain server, and the number of calls that they make.
func newWebhooks(t testing.TB, o cloneset.Options, fail error) (*cloneset.Webhooks, *int) {
	t.Helper()
	made := 0
	w, err := cloneset.New(plainServer(&made, fail), o)
	if err != nil {
		t.Fatal(err)
	}
	return w, &made
}

// newRequest is an update when there is something stored. Both are patches of a plain spec.
func newRequest(t testing.TB, version, stored, now string) admission.Request {
	t.Helper()
	object := func(patch string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"CloneSet",
			"metadata":{"name":"a","namespace":"default","uid":"1"},"spec":%s}`, version, spec(t, patch)))}
	}
	r := rawRequest(version, admissionv1.Create, string(object(now).Raw), "")
	if stored != "" {
		r.Operation, r.OldObject = admissionv1.Update, object(stored)
	}
	return r
}

func rawRequest(version string, operation admissionv1.Operation, object, stored string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "default", Name: "a",
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(stored)},
	}}
}

// rolling wraps a patch of the block of rolling updates.
func rolling(patch string) string {
	return `{"updateStrategy":{"rollingUpdate":` + patch + `}}`
}

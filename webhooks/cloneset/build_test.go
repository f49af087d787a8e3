package cloneset_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// spec is that of a CloneSet of one container, in either version, changed by a merge patch.
func spec(t testing.TB, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"main","image":"app:1"}]}}}`
	return plaintest.Patched(t, plain, patch)
}

// plainServer is an API server that accepts every template, and has a pod, or all of 17 in a list.
func plainServer(made *int, fail error) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			*made++
			return fail
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object,
			_ ...client.GetOption,
		) error {
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

// review sends a request to the webhook at a path, and returns the number of calls that it makes. A request is an
// update when there is something stored. Both are patches of a plain spec.
func review(t testing.TB, fail error, path string, c [3]string) (answer plaintest.Answer, calls int) {
	t.Helper()
	w, err := cloneset.New(plainServer(&calls, fail), kinds.Options{TemplateNoDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return w[path](t.Context(), request(t, c)), calls
}

func request(t testing.TB, c [3]string) admission.Request {
	t.Helper()
	object := func(patch string) string {
		return `{"metadata":{"name":"a","namespace":"shop","uid":"1"},"spec":` + spec(t, patch) + `}`
	}
	version, stored, now := c[0], c[1], object(c[2])
	if stored != "" {
		stored = object(stored)
	}
	return plaintest.Request(plaintest.Kind("CloneSet"), version, now, stored)
}

// rolling wraps a patch of the block of rolling updates.
func rolling(patch string) string {
	return `{"updateStrategy":{"rollingUpdate":` + patch + `}}`
}

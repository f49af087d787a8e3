//go:build envtest

package cloneset_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// Templates have no schema, so that without a webhook a set is stored that no CloneSet can be. It is told what is wrong with
// it, the sets beside it never notice, and mended it is a set like the others.
func TestMalformedSet(t *testing.T) {
	b := start(t, cloneset.Options{})
	text := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"namespace":%q,"name":"odd"},"spec":{
		"replicas":1,"selector":{"matchLabels":{"app":"odd"}},"template":{"metadata":{"labels":{"app":"odd"}},"spec":{"containers":7}}}}`, b.namespace)
	odd := &unstructured.Unstructured{}
	if err := odd.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	b.until(func() error {
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(odd), odd); err != nil {
			return err
		}
		if got := fmt.Sprint(odd.Object["status"]); !strings.Contains(got, "FailedScale") || !strings.Contains(got, "spec.template.spec.containers") {
			return fmt.Errorf("status %s", got)
		}
		return nil
	})
	good := b.create("good", 2, inPlace)
	b.eventually(good, settled)
	b.change(good, image("web:2"))
	b.eventually(good, all(settled, images(map[string]int{"web:2": 2})))
	b.still()
	if err := unstructured.SetNestedSlice(odd.Object, []any{map[string]any{"name": "web", "image": "web:1"}}, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Update(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	b.until(func() error {
		var pods corev1.PodList
		if err := b.client.List(t.Context(), &pods, client.InNamespace(b.namespace), client.MatchingLabels{"app": "odd"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods of the mended set", len(pods.Items))
		}
		return nil
	})
}

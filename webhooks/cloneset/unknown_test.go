package cloneset_test

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// TestUnknownFields: a misspelt field of a template is let in with a warning, by the webhook that has the template judged.
func TestUnknownFields(t *testing.T) {
	const (
		typo = `{"template":{"spec":{"dnsPolicy":"ClusterFirst","containers":[{"name":"main","image":"app:1","imagePullPolicy":"Always","comand":["a"]}]}}}`
		told = `unknown field "spec.template.spec.containers[0].comand"`
	)
	calls := 0
	api := interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
			calls++
			var o client.CreateOptions
			if o.ApplyOptions(opts); o.FieldValidation == metav1.FieldValidationStrict {
				return apierrors.NewBadRequest(`PodTemplate in version "v1" cannot be handled as a PodTemplate: strict decoding error: unknown field "template.spec.containers[0].comand"`)
			}
			return nil
		},
	})
	w, err := cloneset.New(api, cloneset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	req := newRequest(t, "v1beta1", "", typo)
	if answer := w.Validate(t.Context(), req); !answer.Allowed || !slices.Equal(answer.Warnings, []string{told}) || calls != 2 {
		t.Errorf("alone: %d calls, %q, %v", calls, answer.Warnings, answer.Result)
	}
	calls = 0
	if answer := w.Mutate(t.Context(), req); !answer.Allowed || !slices.Equal(answer.Warnings, []string{told}) || calls != 2 {
		t.Errorf("with defaults: %d calls, %q, %v", calls, answer.Warnings, answer.Result)
	}
	if answer := w.Validate(t.Context(), req); !answer.Allowed || answer.Warnings != nil || calls != 2 {
		t.Errorf("after the defaults: %d calls, %q, %v", calls, answer.Warnings, answer.Result)
	}
}

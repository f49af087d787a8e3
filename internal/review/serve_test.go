package review_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
)

// Faults that the stored object has are warnings, of an object that is rejected as well.
func TestWarned(t *testing.T) {
	kind := schema.GroupKind{Group: "kitchen.example.com", Kind: "Toaster"}
	fault := field.ErrorList{field.Required(field.NewPath("spec", "slots"), "must be set")}
	for name, c := range map[string]struct {
		faults, borne field.ErrorList
		want          plaintest.Want
	}{
		"valid":        {},
		"invalid":      {faults: fault, want: plaintest.Want{Code: 422, Paths: "spec.slots"}},
		"stored fault": {borne: fault, want: plaintest.Want{Warnings: 1}},
		"both":         {faults: fault, borne: fault, want: plaintest.Want{Code: 422, Paths: "spec.slots", Warnings: 1}},
	} {
		answer := admission.Allowed("")
		if len(c.faults) > 0 {
			answer = review.Invalid(kind, "x", c.faults)
		}
		plaintest.Answers(t, name, c.want, review.Warned(answer, c.borne))
	}
}

// fakeManager has a webhook server, or none.
type fakeManager struct {
	ctrl.Manager

	server webhook.Server
}

func (m fakeManager) GetWebhookServer() webhook.Server { return m.server }

func TestServe(t *testing.T) {
	allow := func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }
	handlers := map[string]admission.HandlerFunc{"/mutate": allow, "/validate": allow}
	if err := review.Serve(fakeManager{}, handlers); err == nil {
		t.Error("no error without a webhook server")
	}
	mux := http.NewServeMux()
	if err := review.Serve(fakeManager{server: &webhook.DefaultServer{Options: webhook.Options{WebhookMux: mux}}},
		handlers); err != nil {
		t.Fatal(err)
	}
	for path := range handlers {
		if _, pattern := mux.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}}); pattern != path {
			t.Errorf("%s is not served", path)
		}
	}
}

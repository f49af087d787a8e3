package review_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

type toaster struct {
	Slots int `json:"slots"`
}

// oldToaster calls its slots otherwise, and has no toaster of v1beta1 for fewer than none.
type oldToaster struct {
	Slits int `json:"slits"`
}

var errNegative = errors.New("slits must not be negative")

func (o *oldToaster) ConvertTo(hub *toaster) error {
	if o.Slits < 0 {
		return errNegative
	}
	hub.Slots = o.Slits
	return nil
}

func TestReadHub(t *testing.T) {
	var wrong *review.TypeError
	for name, c := range map[string]struct {
		why     string
		version review.Version
		raw     string
		want    toaster
		old     oldToaster
		fails   func(error) bool
	}{
		"hub":           {why: "an object of v1beta1 is decoded as it is", version: review.Hub, raw: `{"slots":2,"slits":3}`, want: toaster{2}},
		"old":           {why: "an object of v1alpha1 is converted", version: review.Old, raw: `{"slots":2,"slits":3}`, want: toaster{3}, old: oldToaster{3}},
		"wrong hub":     {why: "the error names the field", version: review.Hub, raw: `{"slots":"x"}`, fails: func(err error) bool { return errors.As(err, &wrong) }},
		"wrong old":     {why: "the error names the field", version: review.Old, raw: `{"slits":"x"}`, fails: func(err error) bool { return errors.As(err, &wrong) }},
		"nothing":       {why: "a request without an object is an error", version: review.Old, fails: func(err error) bool { return err != nil }},
		"no conversion": {why: "the error of the conversion is returned", version: review.Old, raw: `{"slits":-1}`, old: oldToaster{-1}, fails: func(err error) bool { return errors.Is(err, errNegative) }},
	} {
		t.Run(name, func(t *testing.T) {
			old := oldToaster{}
			got, err := review.ReadHub(c.version, []byte(c.raw), &toaster{}, &old)
			if (err != nil) != (c.fails != nil) || err != nil && !c.fails(err) {
				t.Fatalf("%s: error %v", c.why, err)
			}
			if *got != c.want || old != c.old {
				t.Errorf("%s: %+v of %+v", c.why, *got, old)
			}
		})
	}
}

// A rejection has the code of the kind, and faults that the stored object has are warnings of both.
func TestJudged(t *testing.T) {
	kind := schema.GroupKind{Group: "kitchen.example.com", Kind: "Toaster"}
	fault := field.ErrorList{field.Required(field.NewPath("spec", "slots"), "must be set")}
	for name, c := range map[string]struct {
		faults, borne field.ErrorList
		code          int32
		warnings      int
	}{
		"valid":        {},
		"invalid":      {faults: fault, code: http.StatusUnprocessableEntity},
		"stored fault": {borne: fault, warnings: 1},
		"both":         {faults: fault, borne: fault, code: http.StatusUnprocessableEntity, warnings: 1},
	} {
		for answer, code := range map[string]int32{"Judged": c.code, "JudgedBadRequest": min(c.code, http.StatusBadRequest)} {
			got := review.Judged(kind, "x", c.faults, c.borne)
			if answer == "JudgedBadRequest" {
				got = review.JudgedBadRequest(c.faults, c.borne)
			}
			if got.Allowed != (code == 0) || code != 0 && (got.Result.Code != code || got.Result.Details.Causes[0].Field != "spec.slots") ||
				len(got.Warnings) != c.warnings {
				t.Errorf("%s, %s: %+v, want %d", answer, name, got, code)
			}
		}
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
	if err := review.Serve(fakeManager{server: &webhook.DefaultServer{Options: webhook.Options{WebhookMux: mux}}}, handlers); err != nil {
		t.Fatal(err)
	}
	for path := range handlers {
		if _, pattern := mux.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}}); pattern != path {
			t.Errorf("%s is not served", path)
		}
	}
}

package kinds_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// A fault that the stored object has is a warning, and the API server is asked about a template that is new or has
// changed.
func TestUpdates(t *testing.T) {
	partition := "spec.updateStrategy.rollingUpdate.partition"
	for name, c := range map[string]struct {
		why, stored, now string
		want             plaintest.Want
		calls            int
	}{
		"a new object": {why: "its template is validated", now: `{}`, calls: 1},
		"a fault that was there": {
			why: "nobody could repair or tidy up the set", want: plaintest.Want{Warnings: 1},
			stored: rolling(`{"maxUnavailable":0}`),
			now:    `{"replicas":2,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}`,
		},
		"one more fault": {
			why: "that is the user's doing", stored: rolling(`{"maxUnavailable":0}`),
			now: rolling(`{"maxUnavailable":0,"partition":"x"}`), want: plaintest.Want{Code: 422, Paths: partition, Warnings: 1},
		},
		"a fault that has changed": {
			why: "that is the user's doing", stored: rolling(`{"partition":"x"}`), now: rolling(`{"partition":"y"}`),
			want: plaintest.Want{Code: 422, Paths: partition},
		},
		"template": {why: "it is validated", stored: `{}`, now: `{"template":{"spec":{"priority":1}}}`, calls: 1},
		"names of claims": {
			why: "containers mount them", stored: `{}`, now: `{"volumeClaimTemplates":[{"metadata":{"name":"a"}}]}`, calls: 1,
		},
		"nothing of that": {why: "there is nothing to ask", stored: `{}`, now: `{"replicas":5}`},
	} {
		for _, version := range plaintest.Versions()[1:] {
			t.Run(name, func(t *testing.T) {
				server := &plaintest.Server{}
				w := serve(t, server.Client(), sets(), kinds.Options{})
				plaintest.Answers(t, c.why, c.want, w[validate](t.Context(), change(t, version, c.stored, c.now)))
				if len(server.Asked) != c.calls {
					t.Errorf("%s: asked about %q", c.why, server.Asked)
				}
			})
		}
	}
}

// An API server that does not answer the question is no reason to admit, and the user learns why.
func TestNoVerdict(t *testing.T) {
	template := schema.GroupResource{Resource: "podtemplates"}
	terminating := apierrors.NewForbidden(template, "", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	wrong := field.ErrorList{field.Required(field.NewPath("template", "spec"), "")}
	for name, c := range map[string]struct {
		why  string
		err  error
		want int32
	}{
		"no right": {
			why: "the installation lacks it", err: apierrors.NewForbidden(template, "", errors.New("x cannot create resource")),
			want: 500,
		},
		"quota":       {"the namespace has it", apierrors.NewForbidden(template, "", errors.New("exceeded quota")), 403},
		"terminating": {"nothing can be created there", terminating, 403},
		"missing": {
			why: "it was deleted meanwhile", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"),
			want: 404,
		},
		"slow":     {"it may be asked again", context.DeadlineExceeded, 504},
		"anything": {"the cause is unknown", errors.New("boom"), 500},
		"slow API": {"it may be asked again", apierrors.NewTimeoutError("slow", 1), 504},
		"invalid":  {"that is a verdict", apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", wrong), 422},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, (&plaintest.Server{Rejects: func(client.Object) error { return c.err }}).Client(), sets(),
				kinds.Options{})
			validated := w[validate](t.Context(), change(t, "v1beta1", "", ""))
			mutated := w[mutate](t.Context(), change(t, "v1beta1", "", ""))
			if got := plaintest.Code(validated); got != c.want {
				t.Errorf("validation, %s: code %d, want %d", c.why, got, c.want)
			}
			if c.want == 422 {
				if !mutated.Allowed || len(mutated.Patch) == 0 {
					t.Errorf("defaults wait for a good template: %v", mutated.Result)
				}
			} else if got := plaintest.Code(mutated); got != c.want {
				t.Errorf("defaults, %s: code %d, want %d", c.why, got, c.want)
			}
		})
	}
}

// Requests that are not for the kind, forged ones, and those without an object.
func TestOddRequests(t *testing.T) {
	const plain = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},` +
		`"template":{"metadata":{"labels":{"a":"b"}}}}}`
	forged := func(f func(*admission.Request)) admission.Request {
		r := raw("v1beta1", "", plain, "")
		f(&r)
		return r
	}
	for name, c := range map[string]struct {
		why              string
		request          admission.Request
		mutate, validate int32
	}{
		"a subresource": {
			why: "it is not ours", request: forged(func(r *admission.Request) { r.SubResource, r.Kind.Kind = "scale", "Scale" }),
		},
		"a connection": {"it is not ours", raw("v1beta1", admissionv1.Connect, "", ""), 0, 0},
		"another kind": {
			why: "a configuration is wrong", request: forged(func(r *admission.Request) { r.Kind.Kind = "StatefulSet" }),
			mutate: 400, validate: 400,
		},
		"another group": {
			why: "a configuration is wrong", request: forged(func(r *admission.Request) { r.Kind.Group = "apps" }), mutate: 400,
			validate: 400,
		},
		"another version":   {"it would be misread", raw("v1", "", plain, ""), 400, 400},
		"nothing":           {"there is no object", raw("v1beta1", "", "", ""), 400, 400},
		"no JSON":           {"there is no object", raw("v1beta1", "", "{", ""), 400, 400},
		"null":              {"there is no object", raw("v1beta1", "", "null", ""), 400, 400},
		"a list":            {"there is no object", raw("v1alpha1", "", "[]", ""), 400, 400},
		"a wrong type":      {"the schema says it better", raw("v1alpha1", "", `{"spec":{"replicas":"3"}}`, ""), 0, 400},
		"a wrong template":  {"no schema looks into it", raw("v1beta1", "", `{"spec":{"template":{"spec":7}}}`, ""), 0, 400},
		"nothing stored":    {"the change is unknown", raw("v1beta1", admissionv1.Update, plain, ""), 0, 400},
		"an odd stored":     {"the change is unknown", raw("v1beta1", "", plain, "7"), 0, 400},
		"an empty object":   {"the schema rejects it", raw("v1beta1", "", `{}`, ""), 0, 422},
		"null in its parts": {"null is nothing", raw("v1alpha1", "", `{"metadata":null,"spec":null}`, ""), 0, 422},
		"delete of another": {"it would be misread", raw("v1", admissionv1.Delete, "", plain), 0, 400},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, (&plaintest.Server{}).Client(), sets(), kinds.Options{})
			for path, want := range map[string]int32{mutate: c.mutate, validate: c.validate} {
				if answer := w[path](t.Context(), c.request); plaintest.Code(answer) != want {
					t.Errorf("%s: %s: %+v, want %d", c.why, path, answer.Result, want)
				}
			}
		})
	}
	w := serve(t, (&plaintest.Server{}).Client(), sets(), kinds.Options{})
	plaintest.Answers(t, "the place of a wrong type", plaintest.Want{Code: 400, Paths: "spec.template.spec"},
		w[validate](t.Context(), raw("v1beta1", "", `{"spec":{"template":{"spec":7}}}`, "")))
}

// Deletions are reviewed elsewhere: here only their kind and version are checked.
func TestDelete(t *testing.T) {
	for name, c := range map[string]struct {
		version  string
		reviewed bool
		want     int32
	}{
		"every deletion is allowed":                {"v1beta1", false, 0},
		"the other reviewer rejects":               {"v1beta1", true, 403},
		"both versions are reviewed":               {"v1alpha1", true, 403},
		"the reviewer could read the object wrong": {"v1", true, 400},
	} {
		o := kinds.Options{}
		if c.reviewed {
			o.Delete = func(_ context.Context, r admission.Request) admission.Response {
				return admission.Denied(string(r.OldObject.Raw))
			}
		}
		w := serve(t, (&plaintest.Server{}).Client(), sets(), o)
		answer := w[validate](t.Context(), raw(c.version, admissionv1.Delete, "", `{"x":1}`))
		if plaintest.Code(answer) != c.want || c.want == 403 && answer.Result.Message != `{"x":1}` {
			t.Errorf("%s: %+v", name, answer.Result)
		}
	}
}

// A template that no pod needs is rejected without a dry run, and a stored one can be scaled.
func TestOversizedTemplate(t *testing.T) {
	large := func(more string) string {
		return `{"template":{"spec":{"containers":[{"name":"main","image":"app:1","env":[` +
			strings.Repeat(`{"name":"A"},`, 10_000) + `{"name":"B"}]}]}}` + more + `}`
	}
	for _, version := range plaintest.Versions() {
		server := &plaintest.Server{}
		w := serve(t, server.Client(), sets(), kinds.Options{})
		created := change(t, version, "", large(""))
		scaled := change(t, version, large(`,"replicas":9`), large(`,"replicas":10`))
		for _, path := range []string{mutate, validate} {
			want := plaintest.Want{Code: 422, Paths: "spec.template"}
			plaintest.Answers(t, path, want, w[path](t.Context(), created))
			plaintest.Answers(t, "a stored one is scaled", plaintest.Want{}, w[path](t.Context(), scaled))
		}
		if len(server.Asked) > 0 {
			t.Errorf("asked about %q", server.Asked)
		}
	}
}

// TestNew: which webhooks need a client, and which options are wrong.
func TestNew(t *testing.T) {
	if _, err := kinds.New(nil, sets(), kinds.Options{}); err == nil {
		t.Error("templates without a client")
	}
	if _, err := kinds.New((&plaintest.Server{}).Client(), sets(), kinds.Options{Timeout: -time.Second}); err == nil {
		t.Error("a negative timeout")
	}
	if w, err := kinds.New(nil, spreads(), kinds.Options{}); err != nil || len(w) != 1 {
		t.Errorf("%d paths, %v", len(w), err)
	}
}

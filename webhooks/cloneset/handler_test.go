package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// TestPathsAreThoseOfTheVersion puts the same faults into both versions.
func TestPathsAreThoseOfTheVersion(t *testing.T) {
	cases := map[string]struct {
		why, version, patch string
		want                []string
	}{
		"v1alpha1 budgets": {"they lie beside the type", "v1alpha1", `{"updateStrategy":{"partition":-1,"maxUnavailable":"x","maxSurge":"y"}}`, []string{
			"spec.updateStrategy.partition: FieldValueInvalid", "spec.updateStrategy.maxUnavailable: FieldValueInvalid", "spec.updateStrategy.maxSurge: FieldValueInvalid",
		}},
		"v1beta1 budgets": {"they have a block of their own", "v1beta1", rolling(`{"partition":-1,"maxUnavailable":"x","maxSurge":"y"}`), []string{
			"spec.updateStrategy.rollingUpdate.partition: FieldValueInvalid", "spec.updateStrategy.rollingUpdate.maxUnavailable: FieldValueInvalid",
			"spec.updateStrategy.rollingUpdate.maxSurge: FieldValueInvalid",
		}},
		"v1alpha1 type":     {"conversion would take it for ReCreate", "v1alpha1", `{"updateStrategy":{"type":"Gently"}}`, []string{"spec.updateStrategy.type: FieldValueNotSupported"}},
		"v1alpha1 OnDelete": {"clients of this version count on the refusal", "v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, []string{"spec.updateStrategy.type: FieldValueNotSupported"}},
		"v1beta1 OnDelete":  {"it is for this version", "v1beta1", `{"updateStrategy":{"type":"OnDelete"}}`, nil},
		"v1alpha1 in place": {"it has no surge in any version", "v1alpha1", `{"updateStrategy":{"type":"InPlaceOnly","maxSurge":1}}`, []string{"spec.updateStrategy.maxSurge: FieldValueInvalid"}},
		"v1alpha1 priority": {"terms are below the strategy", "v1alpha1", `{"updateStrategy":{"priorityStrategy":{"orderPriority":[{"orderedKey":""}]}}}`, []string{"spec.updateStrategy.priorityStrategy.orderPriority[0].orderedKey: FieldValueRequired"}},
		"v1alpha1 pods":     {"a new set has none", "v1alpha1", `{"scaleStrategy":{"podsToDelete":["x"]}}`, []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}},
		"v1beta1 pods":      {"they were always let pass", "v1beta1", `{"scaleStrategy":{"podsToDelete":["x"]}}`, nil},
		"v1alpha1 deadline": {"it must come after readiness", "v1alpha1", `{"progressDeadlineSeconds":1,"minReadySeconds":1}`, []string{"spec.progressDeadlineSeconds: FieldValueInvalid"}},
		"v1beta1 deadline":  {"here too", "v1beta1", `{"progressDeadlineSeconds":1,"minReadySeconds":1}`, []string{"spec.progressDeadlineSeconds: FieldValueInvalid"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := newWebhooks(t, cloneset.Options{}, nil)
			answer := w.Validate(t.Context(), newRequest(t, c.version, "", c.patch))
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", c.why, diff, answer.Result)
			}
			wantCode := int32(http.StatusOK)
			if c.want != nil {
				wantCode = http.StatusUnprocessableEntity
			}
			if answer.Result.Code != wantCode || answer.Allowed != (c.want == nil) {
				t.Errorf("code %d, allowed %v", answer.Result.Code, answer.Allowed)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	many := `["mine"`
	for i := range 17 {
		many += fmt.Sprintf(`,"pod-%d"`, i)
	}
	many += `]`
	cases := map[string]struct {
		why, version, stored, now string
		want                      []string
		warnings, calls           int
	}{
		"a fault that was there": {
			"nobody could repair or tidy up the set", "v1beta1",
			rolling(`{"maxUnavailable":0}`), `{"replicas":2,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}`, nil, 1, 0,
		},
		"one more fault": {
			"that is the user's doing", "v1beta1",
			rolling(`{"maxUnavailable":0}`), rolling(`{"maxUnavailable":0,"partition":"x"}`),
			[]string{"spec.updateStrategy.rollingUpdate.partition: FieldValueInvalid"},
			1, 0,
		},
		"a fault that has changed": {
			"that is the user's doing", "v1beta1", rolling(`{"partition":"x"}`), rolling(`{"partition":"y"}`),
			[]string{"spec.updateStrategy.rollingUpdate.partition: FieldValueInvalid"},
			0, 0,
		},
		"an old type that was there": {"as above", "v1alpha1", `{"updateStrategy":{"type":"Gently"}}`, `{"replicas":2,"updateStrategy":{"type":"Gently"}}`, nil, 1, 0},
		"OnDelete that was there":    {"it came from v1beta1, and something else changes", "v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, `{"replicas":2,"updateStrategy":{"type":"OnDelete"}}`, nil, 1, 0},
		"OnDelete from now on":       {"as in a new set", "v1alpha1", `{}`, `{"updateStrategy":{"type":"OnDelete"}}`, []string{"spec.updateStrategy.type: FieldValueNotSupported"}, 0, 0},
		"no OnDelete from now on":    {"that is a way out", "v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, `{"updateStrategy":{"type":"ReCreate"}}`, nil, 0, 0},
		"template":                   {"it is judged", "v1beta1", `{}`, `{"template":{"spec":{"priority":1}}}`, nil, 0, 1},
		"names of claims":            {"containers mount them", "v1beta1", `{}`, `{"volumeClaimTemplates":[{"metadata":{"name":"a"}}]}`, nil, 0, 1},
		"nothing of that":            {"there is nothing to ask", "v1beta1", `{}`, `{"replicas":5}`, nil, 0, 0},
		"a pod of the set":           {"it is read", "v1beta1", `{}`, `{"scaleStrategy":{"podsToDelete":["mine"]}}`, nil, 0, 1},
		"a pod of nobody":            {"in both versions", "v1beta1", `{}`, `{"scaleStrategy":{"podsToDelete":["nobody"]}}`, []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, 0, 1},
		"a pod of nobody, before":    {"in both versions", "v1alpha1", `{}`, `{"scaleStrategy":{"podsToDelete":["nobody"]}}`, []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, 0, 1},
		"a pod that has gone":        {"a controller tidies up later", "v1alpha1", `{"scaleStrategy":{"podsToDelete":["gone","too"]}}`, `{"scaleStrategy":{"podsToDelete":["gone"]}}`, nil, 0, 0},
		"no name":                    {"no pod can have it", "v1beta1", `{}`, `{"scaleStrategy":{"podsToDelete":["../x"]}}`, []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, 0, 0},
		"many pods":                  {"one call is enough", "v1beta1", `{}`, `{"scaleStrategy":{"podsToDelete":` + many + `}}`, []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, 0, 1},
		"in place in v1alpha1":       {"only images change", "v1alpha1", `{"updateStrategy":{"type":"InPlaceOnly"}}`, `{"updateStrategy":{"type":"InPlaceOnly"},"template":{"spec":{"priority":1}}}`, []string{"spec: FieldValueForbidden"}, 0, 1},
		"selector":                   {"pods would be lost", "v1alpha1", `{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`, `{}`, []string{"spec: FieldValueForbidden"}, 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, made := newWebhooks(t, cloneset.Options{}, nil)
			answer := w.Validate(t.Context(), newRequest(t, c.version, c.stored, c.now))
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", c.why, diff, answer.Result)
			}
			if diff := cmp.Diff([]int{c.warnings, c.calls}, []int{len(answer.Warnings), *made}); diff != "" {
				t.Errorf("%s: warnings and calls (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// TestOldAnnotations: v1alpha1 has some fields as annotations, which nobody judged.
func TestOldAnnotations(t *testing.T) {
	w, _ := newWebhooks(t, cloneset.Options{}, nil)
	r := newRequest(t, "v1alpha1", "", "")
	object := map[string]any{}
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(object, "50%", "metadata", "annotations", "apps.kruise.io/image-predownload-parallelism")
	r.Object.Raw = []byte(plaintest.Encode(t, object))
	want := []string{`metadata.annotations[apps.kruise.io/image-predownload-parallelism]: Invalid value: "50%": must be a number, and not negative`}
	answer := w.Validate(t.Context(), r)
	if diff := cmp.Diff(want, answer.Warnings); diff != "" || !answer.Allowed {
		t.Errorf("allowed %v (-want +got):\n%s", answer.Allowed, diff)
	}
}

// TestNoVerdict: an API server that does not answer the question is no reason to let pass, and the user learns why.
func TestNoVerdict(t *testing.T) {
	template := schema.GroupResource{Resource: "podtemplates"}
	terminating := apierrors.NewForbidden(template, "", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		why  string
		err  error
		want int32
	}{
		"no right":       {"it is for who runs the webhook to mend", apierrors.NewForbidden(template, "", errors.New("x cannot create resource")), 500},
		"quota":          {"it is for who runs the namespace", apierrors.NewForbidden(template, "", errors.New("exceeded quota")), 403},
		"terminating":    {"nothing can be made there any more", terminating, 403},
		"missing":        {"it was deleted meanwhile", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), 404},
		"slow":           {"it may be asked again", context.DeadlineExceeded, 504},
		"anything":       {"the cause is unknown", errors.New("boom"), 500},
		"slow API":       {"it may be asked again", apierrors.NewTimeoutError("slow", 1), 504},
		"wrong template": {"that is a verdict", apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", field.ErrorList{field.Required(field.NewPath("template", "spec"), "")}), 422},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := newWebhooks(t, cloneset.Options{}, c.err)
			if got := w.Validate(t.Context(), newRequest(t, "v1beta1", "", "")); got.Allowed || got.Result.Code != c.want {
				t.Errorf("validation, %s: code %d (%s), want %d", c.why, got.Result.Code, got.Result.Message, c.want)
			}
			got := w.Mutate(t.Context(), newRequest(t, "v1beta1", "", ""))
			if c.want == 422 {
				if !got.Allowed || len(got.Patch) == 0 {
					t.Errorf("defaults wait for a good template: %v", got.Result)
				}
				return
			}
			if got.Allowed || got.Result.Code != c.want {
				t.Errorf("defaults, %s: code %d (%s), want %d", c.why, got.Result.Code, got.Result.Message, c.want)
			}
		})
	}
	for name, err := range map[string]error{"slow": context.DeadlineExceeded, "broken": errors.New("boom")} {
		w, _ := newWebhooks(t, cloneset.Options{}, err)
		for _, pods := range []string{`["mine"]`, `["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]`} {
			got := w.Validate(t.Context(), newRequest(t, "v1beta1", `{}`, `{"scaleStrategy":{"podsToDelete":`+pods+`}}`))
			if want := map[string]int32{"slow": 504, "broken": 500}[name]; got.Allowed || got.Result.Code != want {
				t.Errorf("pods, %s: code %d, want %d", name, got.Result.Code, want)
			}
		}
	}
}

// TestOddRequests: what is no request for a CloneSet, or no CloneSet.
func TestOddRequests(t *testing.T) {
	const plain = `{"metadata":{"name":"a","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}}`
	scale := rawRequest("v1beta1", admissionv1.Update, "{}", "{}")
	scale.SubResource = "scale"
	other := rawRequest("v1beta1", admissionv1.Create, plain, "")
	other.Kind.Kind = "StatefulSet"
	cases := map[string]struct {
		why              string
		request          admission.Request
		mutate, validate int32
	}{
		"a subresource":     {"it is not ours", scale, 200, 200},
		"a connection":      {"it is not ours", rawRequest("v1beta1", admissionv1.Connect, "", ""), 200, 200},
		"another kind":      {"somebody misconfigured us", other, 400, 400},
		"another version":   {"we would read it wrong", rawRequest("v1", admissionv1.Create, plain, ""), 400, 400},
		"nothing":           {"there is nothing to judge", rawRequest("v1beta1", admissionv1.Create, "", ""), 400, 400},
		"no JSON":           {"there is nothing to judge", rawRequest("v1beta1", admissionv1.Create, "{", ""), 400, 400},
		"null":              {"there is nothing to judge", rawRequest("v1beta1", admissionv1.Create, "null", ""), 400, 400},
		"a list":            {"there is nothing to judge", rawRequest("v1alpha1", admissionv1.Create, "[]", ""), 400, 400},
		"a wrong type":      {"the schema says it better, before validation", rawRequest("v1alpha1", admissionv1.Create, `{"spec":{"replicas":"3"}}`, ""), 200, 400},
		"a wrong template":  {"no schema looks into it", rawRequest("v1beta1", admissionv1.Create, `{"spec":{"template":{"spec":7}}}`, ""), 200, 400},
		"nothing stored":    {"a change of what?", rawRequest("v1beta1", admissionv1.Update, plain, ""), 200, 400},
		"an empty object":   {"the schema refuses it", rawRequest("v1beta1", admissionv1.Create, `{}`, ""), 200, 422},
		"null in its parts": {"null is nothing", rawRequest("v1alpha1", admissionv1.Create, `{"metadata":null,"spec":null}`, ""), 200, 422},
		"delete of another": {"we would read it wrong", rawRequest("v1", admissionv1.Delete, "", plain), 200, 400},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := newWebhooks(t, cloneset.Options{}, nil)
			mutated, validated := w.Mutate(t.Context(), c.request), w.Validate(t.Context(), c.request)
			if diff := cmp.Diff([]int32{c.mutate, c.validate}, []int32{mutated.Result.Code, validated.Result.Code}); diff != "" {
				t.Errorf("%s: codes (-want +got):\n%s\n%s\n%s", c.why, diff, mutated.Result.Message, validated.Result.Message)
			}
		})
	}
	w, _ := newWebhooks(t, cloneset.Options{}, nil)
	answer := w.Validate(t.Context(), cases["a wrong template"].request)
	if diff := cmp.Diff([]string{"spec.template.spec: FieldValueTypeInvalid"}, plaintest.Causes(answer)); diff != "" {
		t.Errorf("the place of a wrong type (-want +got):\n%s", diff)
	}
}

// Deletions are judged elsewhere: here only their kind and version are checked.
func TestDelete(t *testing.T) {
	cases := map[string]struct {
		why, version string
		judged       bool
		want         int32
	}{
		"no judge":        {"every deletion is allowed", "v1beta1", false, 200},
		"judged":          {"the judge refuses", "v1beta1", true, 403},
		"judged before":   {"both versions are judged", "v1alpha1", true, 403},
		"another version": {"the judge could read the object wrong", "v1", true, 400},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := cloneset.Options{}
			if c.judged {
				o.Delete = func(_ context.Context, req admission.Request) admission.Response {
					return admission.Denied(string(req.OldObject.Raw))
				}
			}
			w, _ := newWebhooks(t, o, nil)
			answer := w.Validate(t.Context(), rawRequest(c.version, admissionv1.Delete, "", `{"x":1}`))
			if answer.Result.Code != c.want || c.want == 403 && answer.Result.Message != `{"x":1}` {
				t.Errorf("%s: %+v", c.why, answer.Result)
			}
		})
	}
}

func TestNew(t *testing.T) {
	if _, err := cloneset.New(nil, cloneset.Options{}); err == nil {
		t.Error("without a client")
	}
	if _, err := cloneset.New(plainServer(new(int), nil), cloneset.Options{Timeout: -time.Second}); err == nil {
		t.Error("with a negative timeout")
	}
}

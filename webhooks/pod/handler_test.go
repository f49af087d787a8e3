package pod_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// serveAt answers a request as an API server asks it.
func serveAt(t *testing.T, w *pod.Webhook, path string, req admission.Request) admission.Response {
	t.Helper()
	return admission.Response{AdmissionResponse: *post(t, w, path, reviewOf(t, req)).Response}
}

// reviewOf is what API servers send.
func reviewOf(t testing.TB, req admission.Request) string {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req.AdmissionRequest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// post sends a review, or what is taken for one.
func post(t testing.TB, w *pod.Webhook, path, body string, header ...string) admissionv1.AdmissionReview {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.Handler(strings.HasPrefix(path, pod.OpenPath) ||
		strings.HasPrefix(path, pod.ProvisionalOpenPath)).ServeHTTP(answer, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || answer.Code != http.StatusOK ||
		review.Response == nil {
		t.Fatalf("%v: %d %s", err, answer.Code, answer.Body)
	}
	return review
}

// What is no review of a pod is refused with what is wrong about it, and a review is answered in its own version.
func TestHandler(t *testing.T) {
	good := reviewOf(t, request(t, "u", plain))
	odd := strings.Replace(good, `"containers":[`, `"nodeName":1,"containers":[`, 1)
	for name, c := range map[string]struct {
		why, body string
		header    []string
		code      int32 // 200 where it is allowed
		version   string
		uid, says string
	}{
		"good": {"it is allowed", good, nil, 200, "admission.k8s.io/v1", "u", ""},
		"the old version": {
			why:     "it is answered in it",
			body:    strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1),
			code:    200,
			version: "admission.k8s.io/v1beta1",
			uid:     "u",
		},
		"a field unknown": {
			why:     "a later API server has it",
			body:    strings.Replace(good, `"uid"`, `"later":{"a":[1]},"uid"`, 1),
			code:    200,
			version: "admission.k8s.io/v1",
			uid:     "u",
		},
		"no pod": {
			why:     "it tells where",
			body:    odd,
			code:    400,
			version: "admission.k8s.io/v1",
			uid:     "u",
			says:    "spec.nodeName: a number where string is wanted",
		},
		"null": {
			why:     "there is nothing to look at",
			body:    strings.Replace(good, `"object":{`, `"object":null,"rest":{`, 1),
			code:    400,
			version: "admission.k8s.io/v1",
			uid:     "u",
			says:    "has no pod",
		},
		"nothing": {"an empty body", "", nil, 400, "admission.k8s.io/v1", "", "the request has none"},
		"no JSON": {"a broken body", good[:len(good)/2], nil, 400, "admission.k8s.io/v1", "", "unexpected end"},
		"no review": {
			why:     "something else",
			body:    `{"apiVersion":"v1","kind":"Pod","request":{"uid":"u"}}`,
			code:    400,
			version: "admission.k8s.io/v1",
			says:    `not a "Pod"`,
		},
		"no request": {
			why:     "an answer",
			body:    `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{}}`,
			code:    400,
			version: "admission.k8s.io/v1",
			says:    "without a request",
		},
		"no type": {
			why:     "whoever sends that does not speak to us",
			body:    good,
			header:  []string{"Content-Type", "text/plain"},
			code:    400,
			version: "admission.k8s.io/v1",
			says:    `"text/plain"`,
		},
		"too large": {
			why:     "no API server sends it",
			body:    good + strings.Repeat(" ", 8<<20),
			code:    400,
			version: "admission.k8s.io/v1",
			says:    "of at most",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := post(t, hook(t, nil, pod.Options{}), pod.Path, c.body, c.header...)
			r := got.Response
			if got.Kind != "AdmissionReview" || got.APIVersion != c.version || string(r.UID) != c.uid || got.Request != nil {
				t.Errorf("%s: %s %s for %q", c.why, got.APIVersion, got.Kind, r.UID)
			}
			if r.Allowed != (c.code == 200) || r.Result.Code != c.code || !strings.Contains(r.Result.Message, c.says) {
				t.Errorf("%s: %t %d %q", c.why, r.Allowed, r.Result.Code, r.Result.Message)
			}
		})
	}
}

// A pod is refused in words also where this program is at fault.
func TestPanic(t *testing.T) {
	w, err := over(pod.SidecarLookups{Sets: pod.NewIndex(), Namespaces: &shelf{}, Revisions: &shelf{}},
		pod.Options{Now: func() time.Time { panic("no time") }})
	if err != nil {
		t.Fatal(err)
	}
	if r := post(t, w, pod.Path, reviewOf(t, request(t, "u", plain))).Response; r.Allowed || r.Result.Code != 500 ||
		!strings.Contains(r.Result.Message, "no time") || r.UID != "u" {
		t.Errorf("%+v", r)
	}
}

// A pod that has no name yet is known by the start of it.
func TestRefusedWithoutName(t *testing.T) {
	unnamed := strings.Replace(plain, "name: p,", "generateName: web-,", 1)
	answer := hook(t, nil, pod.Options{}, newSet(t, "a", logs), newSet(t, "b", logs)).Review(t.Context(),
		request(t, "u", unnamed))
	if answer.Allowed || answer.Result.Details == nil || answer.Result.Details.Kind != "Pod" ||
		answer.Result.Details.Name != "web-" {
		t.Errorf("%+v", answer.Result)
	}
}

// FuzzHandler: no body makes the handler panic, and each has an answer with a verdict.
func FuzzHandler(f *testing.F) {
	good := reviewOf(f, request(f, "u", plain))
	f.Add(good)
	f.Add(strings.Replace(good, `"containers":[`, `"containers":[null,{"env":[{"valueFrom":{}}],"lifecycle":{}},`, 1))
	f.Add(strings.Replace(good, `"metadata":{`,
		`"metadata":{"annotations":{"kruise.io/sidecarset-hash":"[","apps.kruise.io/container-launch-priority":"Ordered"},`,
		1))
	f.Add(`{"kind":"AdmissionReview","request":{"operation":"CREATE","resource":{"version":"v1","resource":"pods"},"object":null}}`)
	f.Fuzz(func(t *testing.T, body string) {
		w := hook(t, &shelf{}, pod.Options{},
			newSet(t, "log", `{"selector":{},"containers":[{"name":"log","image":"log:1"}]}`))
		answer := post(t, w, pod.Path, body)
		if r := answer.Response; !r.Allowed && r.Result.Message == "" {
			t.Errorf("refused without a word: %+v", r)
		}
	})
}

package conversion_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

func TestConvert(t *testing.T) {
	cases := map[string]struct {
		why, wanted, object, want string
	}{
		"fields nobody described": {
			why:    "a pod template of a newer API server must survive a program built against an older type library",
			wanted: "apps.kruise.io/v1beta1",
			object: `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{"name":"a"},"spec":{"selector":{},"template":{"spec":{"fromTheFuture":{"n":1.50},"containers":[{"name":"c","alsoNew":null}]}},"updateStrategy":{"type":"InPlaceOnly"}}}`,
			want:   `{"fromTheFuture":{"n":1.50},"containers":[{"name":"c","alsoNew":null}]}`,
		},
		"the version it has": {
			why:    "an API server may ask for the version that an object already has",
			wanted: "apps.kruise.io/v1alpha1",
			object: `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","x":1}`,
			want:   `"x":1`,
		},
		"no template": {
			why:    "what the API server stored before a field was required must still be read",
			wanted: "apps.kruise.io/v1alpha1",
			object: `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"a"},"spec":null}`,
			want:   `"kind":"CloneSet","apiVersion":"apps.kruise.io/v1alpha1"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp := review(t, c.wanted, c.object)
			if resp.Result.Status != metav1.StatusSuccess {
				t.Fatalf("%s: refused: %s", c.why, resp.Result.Message)
			}
			if got := string(resp.ConvertedObjects[0].Raw); !strings.Contains(got, c.want) {
				t.Errorf("%s: want %s in\n%s", c.why, c.want, got)
			}
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	cases := map[string]struct{ wanted, object, want string }{
		"an unknown kind": {
			"apps.kruise.io/v1beta1", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"Toaster"}`,
			"cannot convert apps.kruise.io/v1alpha1, Kind=Toaster",
		},
		"an unknown version": {
			"apps.kruise.io/v3", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}`, "to apps.kruise.io/v3",
		},
		"another group": {
			"apps/v1beta1", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}`, "to apps/v1beta1",
		},
		"a wrong type": {
			"apps.kruise.io/v1beta1", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"replicas":"many"}}`,
			"spec.replicas",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp := review(t, c.wanted, c.object)
			if resp.Result.Status != metav1.StatusFailure || !strings.Contains(resp.Result.Message, c.want) {
				t.Errorf("want a refusal with %q, got %s %q", c.want, resp.Result.Status, resp.Result.Message)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	for name, body := range map[string]string{"not JSON": "{", "no request": "{}", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			conversion.NewHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, conversion.Path, strings.NewReader(body)))
			if diff := cmp.Diff(http.StatusBadRequest, w.Code); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// A body above the limit is not read to its end.
func TestLargeBody(t *testing.T) {
	body := &endless{}
	w := httptest.NewRecorder()
	conversion.NewHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, conversion.Path, body))
	if w.Code != http.StatusRequestEntityTooLarge || body.sent > 16<<20 {
		t.Errorf("answered %d after %d MiB", w.Code, body.sent>>20)
	}
}

// endless is a text that ends after 64 MiB, which no reader with a limit sees.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	if e.sent > 64<<20 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = ' '
	}
	e.sent += len(p)
	return len(p), nil
}

// FuzzReview: no body makes the handler panic, and each request has an answer that can be decoded.
func FuzzReview(f *testing.F) {
	f.Add(`{"request":{"uid":"1","desiredAPIVersion":"apps.kruise.io/v1beta1","objects":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","spec":{"template":null}}]}}`)
	f.Add(`{"request":{"desiredAPIVersion":"apps.kruise.io/v1alpha1","objects":[null,{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","spec":{"containers":[{}]}}]}}`)
	f.Add(`{"request":{"desiredAPIVersion":"policy.kruise.io/v1beta1","objects":[{"apiVersion":"policy.kruise.io/v1alpha1","kind":"PodUnavailableBudget","metadata":{"annotations":{"a":1}}}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		conversion.NewHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, conversion.Path, strings.NewReader(body)))
		if w.Code != http.StatusOK {
			return
		}
		answer := apiextensionsv1.ConversionReview{}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
			t.Errorf("%v in the answer %s", err, w.Body)
		}
	})
}

func review(t *testing.T, wanted, object string) *apiextensionsv1.ConversionResponse {
	t.Helper()
	body, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request: &apiextensionsv1.ConversionRequest{
			UID: "1", DesiredAPIVersion: wanted, Objects: []runtime.RawExtension{{Raw: []byte(object)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	conversion.NewHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, conversion.Path, bytes.NewReader(body)))
	answer := apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("decode answer: %v\n%s", err, w.Body)
	}
	if answer.Response == nil || answer.Response.UID != "1" || answer.Request != nil || answer.Kind != "ConversionReview" {
		t.Fatalf("not an answer: %s", w.Body)
	}
	return answer.Response
}

package serving

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// sent is a review as an API server writes it.
func sent(t *testing.T, namespace, name, object string) string {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "u", Kind: metav1.GroupVersionKind{Kind: "CloneSet"}, Name: name, Namespace: namespace,
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)},
	}
	kind := metav1.TypeMeta{Kind: "AdmissionReview"}
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: kind, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNamespaceOf(t *testing.T) {
	const forged = `{"metadata":{"namespace":"forged"},"namespace":"forged","request":{"namespace":"forged"}}`
	review := sent(t, "shop", "a", forged)
	cases := map[string]struct{ why, body, want string }{
		"a review":       {"it names the namespace before the object", review, "shop"},
		"the beginning":  {"what comes behind the namespace is not needed", review[:250], "shop"},
		"less":           {"there is no namespace yet", review[:60], ""},
		"cluster-scoped": {"the author of an object decides what is in it", sent(t, "", "a", forged), ""},
		"a hostile name": {
			why:  "it is a string, whatever is in it",
			body: sent(t, "shop", `","namespace":"forged","b":"`, forged), want: "shop",
		},
		"a conversion": {
			why: "the namespace is that of the first object",
			body: `{"request":{"desiredAPIVersion":"a","objects":[{"kind":"A",` +
				`"metadata":{"annotations":{"namespace":"forged"},"namespace":"shop"}}]}}`,
			want: "shop",
		},
		"another object": {
			why:  "the first one has none",
			body: `{"request":{"objects":[{"metadata":{}},{"metadata":{"namespace":"shop"}}]}}`,
		},
		"elsewhere": {
			why:  "it is the namespace of nothing",
			body: `{"namespace":"forged","a":{"request":{"namespace":"forged"}},"request":{"namespace":"shop"}}`, want: "shop",
		},
		"in a list":            {"it is the namespace of nothing", `{"request":[{"namespace":"forged"}]}`, ""},
		"a number":             {"a namespace is a string", `{"request":{"namespace":1}}`, ""},
		"a list of namespaces": {"a namespace is a string", `{"request":{"namespace":["forged"]}}`, ""},
		"no JSON":              {"it is refused later", "aaaa", ""},
		"nothing":              {"it is refused later", "", ""},
		"a list":               {"it is refused later", "[1]", ""},
		"closed too early":     {"it is refused later", "}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := namespaceOf([]byte(c.body)); got != c.want {
				t.Errorf("%s: %q, want %q", c.why, got, c.want)
			}
		})
	}
}

// Whatever is in a review, its namespace is found, or that of no other one.
func FuzzNamespaceOf(f *testing.F) {
	f.Add("shop", "a", `{"namespace":"forged"}`, 1000)
	f.Add("", `","namespace":"b`, `{"request":{"namespace":"forged"}}`, 80)
	f.Add("shop", "", strings.Repeat(`{"request":[`, 100), 200)
	f.Fuzz(func(t *testing.T, namespace, name, object string, cut int) {
		namespace, name = strings.ToValidUTF8(namespace, ""), strings.ToValidUTF8(name, "")
		_ = namespaceOf([]byte(object)) // does not panic
		if !json.Valid([]byte(object)) {
			object = `{}`
		}
		body := sent(t, namespace, name, object)
		if got := namespaceOf([]byte(body)); got != namespace {
			t.Errorf("%q of %s", got, body)
		}
		if got := namespaceOf([]byte(body[:max(0, min(cut, len(body)))])); got != "" && got != namespace {
			t.Errorf("%q of the beginning of %s", got, body)
		}
	})
}

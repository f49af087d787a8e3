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
		UID: "u", Kind: metav1.GroupVersionKind{Kind: "CloneSet"}, Name: name, Namespace: namespace, Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: []byte(object)},
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNamespaceOf(t *testing.T) {
	const forged = `{"metadata":{"namespace":"forged"},"namespace":"forged","request":{"namespace":"forged"}}`
	cases := map[string]struct{ why, body, want string }{
		"a review":             {"it names the namespace before the object", sent(t, "shop", "a", forged), "shop"},
		"a hostile name":       {"it is a string, whatever is in it", sent(t, "shop", `","namespace":"forged","b":"`, forged), "shop"},
		"cluster-scoped":       {"the author of an object decides what is in it", sent(t, "", "a", forged), ""},
		"the beginning":        {"what comes behind the namespace is not needed", sent(t, "shop", "a", forged)[:250], "shop"},
		"less":                 {"there is no namespace yet", sent(t, "shop", "a", forged)[:60], ""},
		"a conversion":         {"the namespace is that of the first object", `{"request":{"desiredAPIVersion":"a","objects":[{"kind":"A","metadata":{"annotations":{"namespace":"forged"},"namespace":"shop"}}]}}`, "shop"},
		"another object":       {"the first one has none", `{"request":{"objects":[{"metadata":{}},{"metadata":{"namespace":"shop"}}]}}`, ""},
		"in a list":            {"it is the namespace of nothing", `{"request":[{"namespace":"forged"}]}`, ""},
		"elsewhere":            {"it is the namespace of nothing", `{"namespace":"forged","a":{"request":{"namespace":"forged"}},"request":{"namespace":"shop"}}`, "shop"},
		"a number":             {"a namespace is a string", `{"request":{"namespace":1}}`, ""},
		"no JSON":              {"it is refused later", "aaaa", ""},
		"nothing":              {"it is refused later", "", ""},
		"a list":               {"it is refused later", "[1]", ""},
		"closed too early":     {"it is refused later", "}", ""},
		"a list of namespaces": {"a namespace is a string", `{"request":{"namespace":["forged"]}}`, ""},
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

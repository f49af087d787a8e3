package native_test

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/webhooks/native"
)

// TestHandle answers requests that no API server sends, as a forged one.
func TestHandle(t *testing.T) {
	const before, after = `{"metadata":{"generation":4}}`, `{"spec":{"template":{"spec":{"nodeName":"n1"}}}}`
	held := `[{"op":"test","path":"/metadata/annotations","value":null},` +
		`{"op":"add","path":"/metadata/annotations","value":{"kruisekit.dev/rollout-hold":"4"}},` +
		`{"op":"add","path":"/spec/paused","value":true}]`
	cases := map[string]struct {
		why                    string
		resource, part         string
		operation              admissionv1.Operation
		before, after, patched string
	}{
		"change":       {"the template differs", "deployments", "", admissionv1.Update, before, after, held},
		"same":         {"nothing is to be held", "deployments", "", admissionv1.Update, before, before, ""},
		"malformed":    {"is admitted", "deployments", "", admissionv1.Update, before, `{"spec":3}`, ""},
		"nothing":      {"is admitted", "deployments", "", admissionv1.Update, "", "", ""},
		"a creation":   {"has no pods", "deployments", "", admissionv1.Create, before, after, ""},
		"a status":     {"has no template", "deployments", "status", admissionv1.Update, before, after, ""},
		"another kind": {"is no Deployment", "daemonsets", "", admissionv1.Update, before, after, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: c.operation, Resource: metav1.GroupVersionResource{Resource: c.resource}, SubResource: c.part,
				OldObject: runtime.RawExtension{Raw: []byte(c.before)}, Object: runtime.RawExtension{Raw: []byte(c.after)},
			}}
			answer := native.Handle(t.Context(), req)
			if err := answer.Complete(req); err != nil || !answer.Allowed {
				t.Fatalf("%s: %v, %v", c.why, answer, err)
			}
			if !equal(t, string(answer.Patch), c.patched) {
				t.Errorf("%s: patch %s, want %s", c.why, answer.Patch, c.patched)
			}
		})
	}
}

func equal(t *testing.T, a, b string) bool {
	t.Helper()
	if a == "" || b == "" {
		return a == b
	}
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	one, _ := json.Marshal(x)
	two, _ := json.Marshal(y)
	return string(one) == string(two)
}

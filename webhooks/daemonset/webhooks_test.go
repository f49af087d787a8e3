package daemonset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
)

// object is a set of one container whose spec is changed by a merge patch.
func object(t testing.TB, version, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"agent"}},"template":{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"main","image":"agent:1"}]}}}`
	return fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"DaemonSet","metadata":{"name":"agent","namespace":"default"},"spec":%s}`,
		version, plaintest.Patched(t, plain, patch))
}

// newWebhooks gives webhooks in front of an API server that accepts all templates, or fails.
func newWebhooks(t testing.TB, fail error) *daemonset.Webhooks {
	t.Helper()
	w, err := daemonset.New(interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return fail },
	}), daemonset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func request(version, now, before string) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "default", Name: "agent",
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "DaemonSet"},
		Object: runtime.RawExtension{Raw: []byte(now)},
	}}
	if before != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(before)
	}
	return r
}

// Defaults are added, and the template stays as it was written.
func TestMutate(t *testing.T) {
	const beside = `{"op":"add","path":"/spec/burstReplicas","value":250},{"op":"add","path":"/spec/revisionHistoryLimit","value":10}`
	for name, c := range map[string]struct {
		why, version, patch, want string
	}{
		"nothing is set": {"all defaults", "v1beta1", ``, "[" + beside + `,{"op":"add","path":"/spec/updateStrategy","value":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1,"rollingUpdateType":"Standard"},"type":"RollingUpdate"}}]`},
		"surge":          {"a bound that stands alone leaves the other absent", "v1beta1", `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"rollingUpdateType":"Standard","maxSurge":1}}}`, "[" + beside + "]"},
		"on delete":      {"no block of rolling updates", "v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, "[" + beside + "]"},
		"everything":     {"nothing is left to add", "v1beta1", `{"burstReplicas":"10%","revisionHistoryLimit":0,"updateStrategy":{"type":"OnDelete"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, nil).Mutate(t.Context(), request(c.version, object(t, c.version, c.patch), ""))
			if diff := cmp.Diff(c.want, string(answer.Patch)); diff != "" || !answer.Allowed {
				t.Errorf("%s: %+v (-want +got):\n%s", c.why, answer.Result, diff)
			}
		})
	}
	surging := `{"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"Surging"}}}`
	answer := newWebhooks(t, nil).Mutate(t.Context(), request("v1alpha1", object(t, "v1alpha1", surging), ""))
	for _, want := range []string{`/maxSurge","value":1}`, `/maxUnavailable","value":0}`} {
		if !strings.Contains(string(answer.Patch), want) {
			t.Errorf("v1alpha1 Surging: %s lacks %s", answer.Patch, want)
		}
	}
}

// Faults have their paths, and one that the stored set has is a warning.
func TestValidate(t *testing.T) {
	plain := object(t, "v1beta1", "")
	bad := object(t, "v1beta1", `{"updateStrategy":{"rollingUpdate":{"partition":"150%"}}}`)
	worse := object(t, "v1beta1", `{"minReadySeconds":-1,"burstReplicas":0,"lifecycle":{"inPlaceUpdate":{}},"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"Surging","maxUnavailable":1,"maxSurge":1}}}`)
	for name, c := range map[string]struct {
		why, now, before string
		fail             error
		code             int32
		paths            string
		warnings         int
	}{
		"valid": {"a set with a template alone", plain, "", nil, 0, "", 0},
		"every fault": {"all faults are reported at once", worse, "", nil, 422, "spec.minReadySeconds spec.lifecycle.inPlaceUpdate spec.burstReplicas " +
			"spec.updateStrategy.rollingUpdate.rollingUpdateType spec.updateStrategy.rollingUpdate.maxSurge", 0},
		"stored fault": {"the stored set has the fault", bad, bad, nil, 0, "", 1},
		"new fault":    {"the stored set does not have the fault", bad, plain, nil, 422, "spec.updateStrategy.rollingUpdate.partition", 0},
		"selector": {
			"the selector cannot change", object(t, "v1beta1", `{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}`),
			plain, nil, 422, "spec", 0,
		},
		"no verdict": {"the API server does not answer about the template", plain, "", errors.New("no answer"), 500, "", 0},
		"a list":     {"a set that cannot be decoded", `{"spec":[]}`, "", nil, 400, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, c.fail).Validate(t.Context(), request("v1beta1", c.now, c.before))
			paths := plaintest.Paths(answer)
			code := plaintest.Code(answer)
			if code != c.code || c.paths != "" && strings.Join(paths, " ") != c.paths || len(answer.Warnings) != c.warnings {
				t.Errorf("%s: code %d at %q, warnings %q", c.why, code, paths, answer.Warnings)
			}
		})
	}
	other := request("v1beta1", plain, "")
	other.Kind.Kind = "Job"
	if answer := newWebhooks(t, nil).Validate(t.Context(), other); answer.Allowed {
		t.Error("another kind is admitted")
	}
	if _, err := daemonset.New(nil, daemonset.Options{}); err == nil {
		t.Error("no error without a client")
	}
}

// FuzzReview: whatever is sent, the handlers answer.
func FuzzReview(f *testing.F) {
	f.Add(`{"spec":{"template":{"spec":{"containers":[]}}}}`, `{}`)
	f.Add(`{"spec":{"burstReplicas":{},"template":[]}}`, `null`)
	f.Fuzz(func(t *testing.T, now, before string) {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			w := newWebhooks(t, nil)
			_ = w.Mutate(t.Context(), request(version, now, before))
			_ = w.Validate(t.Context(), request(version, now, before))
		}
	})
}

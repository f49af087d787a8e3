package broadcastjob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
)

// object is a job of one container whose spec is changed by a merge patch.
func object(t testing.TB, version, namespace, patch string) string {
	t.Helper()
	const plain = `{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"check:1"}]}}}`
	return fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"BroadcastJob","metadata":{"generateName":"check-","namespace":%q},"spec":%s}`,
		version, namespace, plaintest.Patched(t, plain, patch))
}

// newWebhooks gives webhooks in front of an API server that knows one default of templates.
func newWebhooks(t testing.TB, o broadcastjob.Options, fail error) *broadcastjob.Webhooks {
	t.Helper()
	w, err := broadcastjob.New(interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			if fail != nil {
				return fail
			}
			template := obj.(*unstructured.Unstructured).Object["template"].(map[string]any)
			if pod, ok := template["spec"].(map[string]any); ok && pod["dnsPolicy"] == nil {
				pod["dnsPolicy"] = "ClusterFirst"
			}
			return nil
		},
	}), o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func request(version, now, before string) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "default", Name: "check",
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "BroadcastJob"},
		Object: runtime.RawExtension{Raw: []byte(strings.Replace(now, `"generateName":"check-"`, `"name":"check"`, 1))},
	}}
	if before != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(strings.Replace(before, `"generateName":"check-"`, `"name":"check"`, 1))
	}
	return r
}

// Defaults are added, and nothing else is changed.
func TestMutate(t *testing.T) {
	const all = `{"op":"add","path":"/spec/completionPolicy","value":{"type":"Always"}},{"op":"add","path":"/spec/failurePolicy","value":{"type":"FailFast"}},{"op":"add","path":"/spec/parallelism","value":2147483647}`
	const pod = `{"op":"add","path":"/spec/template/spec/containers/0/imagePullPolicy","value":"Always"},{"op":"add","path":"/spec/template/spec/dnsPolicy","value":"ClusterFirst"}`
	cases := map[string]struct {
		why, patch string
		options    broadcastjob.Options
		want       string
	}{
		"nothing is set": {"all defaults", ``, broadcastjob.Options{}, "[" + all + "," + pod + "]"},
		"no restart policy": {
			"pods that end cannot have the default of the API server", `{"template":{"spec":{"restartPolicy":null}}}`,
			broadcastjob.Options{TemplateNoDefaults: true},
			"[" + all + `,{"op":"add","path":"/spec/template/spec/restartPolicy","value":"OnFailure"}]`,
		},
		"everything is set": {
			"nothing is left to add", `{"parallelism":"10%","completionPolicy":{"type":"Never"},"failurePolicy":{"type":"Pause"},"template":{"spec":{"dnsPolicy":"Default","containers":[{"name":"main","imagePullPolicy":"Never"}]}}}`,
			broadcastjob.Options{},
			"",
		},
		"the gate":   {"the template stays as it was written", ``, broadcastjob.Options{TemplateNoDefaults: true}, "[" + all + "]"},
		"half of it": {"what is set stays", `{"completionPolicy":{"activeDeadlineSeconds":5}}`, broadcastjob.Options{TemplateNoDefaults: true}, strings.Replace("["+all+"]", `/completionPolicy","value":{"type":"Always"}`, `/completionPolicy/type","value":"Always"`, 1)},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				answer := newWebhooks(t, c.options, nil).Mutate(t.Context(), request(version, object(t, version, "default", c.patch), ""))
				if diff := cmp.Diff(c.want, string(answer.Patch)); diff != "" || !answer.Allowed {
					t.Errorf("%s: %+v (-want +got):\n%s", c.why, answer.Result, diff)
				}
			})
		}
	}
}

// Faults have their paths, and one that the stored job has is a warning.
func TestValidate(t *testing.T) {
	plain := object(t, "v1beta1", "default", "")
	bad := object(t, "v1beta1", "default", `{"failurePolicy":{"type":"Retry"}}`)
	worse := object(t, "v1beta1", "default", `{"failurePolicy":{"type":"Retry"},"parallelism":-1,"template":{"spec":{"restartPolicy":"Always"}}}`)
	cases := map[string]struct {
		why, now, before string
		fail             error
		code             int32
		paths            string
		warnings         int
	}{
		"valid":        {"a job with a template alone", plain, "", nil, 0, "", 0},
		"every fault":  {"all faults are reported at once", worse, "", nil, 422, "spec.parallelism spec.failurePolicy.type spec.template.spec.restartPolicy", 0},
		"stored fault": {"the stored job has the fault", bad, bad, nil, 0, "", 1},
		"new fault":    {"the stored job does not have the fault", bad, plain, nil, 422, "spec.failurePolicy.type", 0},
		"no verdict":   {"the API server does not answer about the template", plain, "", errors.New("no answer"), 500, "", 0},
		"a list":       {"a job that cannot be decoded", `{"spec":[]}`, "", nil, 400, "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, broadcastjob.Options{}, c.fail).Validate(t.Context(), request("v1beta1", c.now, c.before))
			paths := plaintest.Paths(answer)
			code := plaintest.Code(answer)
			if code != c.code || c.paths != "" && strings.Join(paths, " ") != c.paths || len(answer.Warnings) != c.warnings {
				t.Errorf("%s: code %d at %q, warnings %q", c.why, code, paths, answer.Warnings)
			}
		})
	}
	other := request("v1beta1", plain, "")
	other.Kind.Kind = "Job"
	if answer := newWebhooks(t, broadcastjob.Options{}, nil).Validate(t.Context(), other); answer.Allowed {
		t.Error("another kind is admitted")
	}
	if _, err := broadcastjob.New(nil, broadcastjob.Options{}); err == nil {
		t.Error("no error without a client")
	}
}

// FuzzReview: whatever is sent, the handlers answer.
func FuzzReview(f *testing.F) {
	f.Add(`{"spec":{"template":{"spec":{"containers":[]}}}}`, `{}`)
	f.Add(`{"spec":{"parallelism":{},"template":[]}}`, `null`)
	f.Fuzz(func(t *testing.T, now, before string) {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			w := newWebhooks(t, broadcastjob.Options{HostNetworkHostPorts: true}, nil)
			_ = w.Mutate(t.Context(), request(version, now, before))
			_ = w.Validate(t.Context(), request(version, now, before))
		}
	})
}

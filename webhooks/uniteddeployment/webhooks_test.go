package uniteddeployment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
)

// members are the templates of the four kinds.
func members() []string {
	return []string{"cloneSetTemplate", "advancedStatefulSetTemplate", "statefulSetTemplate", "deploymentTemplate"}
}

// object is a UnitedDeployment of two subsets whose spec is changed by a merge patch.
func object(t testing.TB, version, namespace, member, patch string) string {
	t.Helper()
	plain := `{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"topology":{"subsets":[{"name":"a"},{"name":"b"}]},"template":{"` + member + `":{
		"metadata":{"labels":{"app":"web"}},
		"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}}}`
	return fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"UnitedDeployment","metadata":{"name":"web","namespace":%q},"spec":%s}`,
		version, namespace, plaintest.Patched(t, plain, patch))
}

// server answers dry runs: it knows one default of pod templates, and rejects a strategy of workloads. It counts the calls.
func server(fail error, calls *[]string) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, all ...client.CreateOption) error {
			if len((&client.CreateOptions{}).ApplyOptions(all).DryRun) == 0 {
				return errors.New("this would be stored")
			}
			raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return err
			}
			*calls = append(*calls, fmt.Sprintf("%T", o))
			if fail != nil {
				return fail
			}
			if pod, _, _ := unstructured.NestedMap(raw, "template", "spec"); pod != nil {
				return unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "ClusterFirst", "template", "spec", "dnsPolicy")
			}
			for _, strategy := range []string{"strategy", "updateStrategy"} {
				if kind, _, _ := unstructured.NestedString(raw, "spec", strategy, "type"); kind == "Gently" {
					return apierrors.NewInvalid(schema.GroupKind{Group: "apps"}, "x", field.ErrorList{field.NotSupported(field.NewPath("spec", strategy, "type"), kind, []string{"Recreate"})})
				}
			}
			return nil
		},
	})
}

func request(version, now, before string) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "default", Name: "web",
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "UnitedDeployment"},
		Object: runtime.RawExtension{Raw: []byte(now)},
	}}
	if before != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(before)
	}
	return r
}

func newWebhooks(t testing.TB, o uniteddeployment.Options, fail error) (*uniteddeployment.Webhooks, *[]string) {
	t.Helper()
	var calls []string
	w, err := uniteddeployment.New(server(fail, &calls), o)
	if err != nil {
		t.Fatal(err)
	}
	return w, &calls
}

// A statefulSetTemplate alone gets the defaults of pod templates.
func TestMutate(t *testing.T) {
	for _, member := range members() {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			w, calls := newWebhooks(t, uniteddeployment.Options{}, nil)
			answer := w.Mutate(t.Context(), request(version, object(t, version, "default", member, `{"replicas":null,"topology":{"subsets":[{"name":"a","maxReplicas":2},{"name":"b"}]}}`), ""))
			patch := string(answer.Patch)
			for _, want := range []string{`"path":"/spec/replicas","value":1`, `"path":"/spec/revisionHistoryLimit","value":10`, `"type":"Manual"`} {
				if !strings.Contains(patch, want) || !answer.Allowed {
					t.Errorf("%s %s: no %s in %s", version, member, want, patch)
				}
			}
			defaulted := strings.Contains(patch, `"path":"/spec/template/statefulSetTemplate/spec/template/spec/dnsPolicy"`)
			if defaulted != (member == "statefulSetTemplate") || len(*calls) > 0 != defaulted {
				t.Errorf("%s %s: %d calls, patch %s", version, member, len(*calls), patch)
			}
		}
	}
	w, calls := newWebhooks(t, uniteddeployment.Options{TemplateNoDefaults: true}, nil)
	answer := w.Mutate(t.Context(), request("v1beta1", object(t, "v1beta1", "default", "statefulSetTemplate", ""), ""))
	if strings.Contains(string(answer.Patch), "dnsPolicy") || len(*calls) > 0 {
		t.Errorf("with the gate: %s", answer.Patch)
	}
}

// Faults have their paths, those of the API server too, and one that the stored object has is a warning.
func TestValidate(t *testing.T) {
	const set, deployed, cloned = "statefulSetTemplate", "deploymentTemplate", "cloneSetTemplate"
	negative := `{"replicas":-1}`
	gently := func(member, strategy string) string {
		return `{"template":{"` + member + `":{"spec":{"` + strategy + `":{"type":"Gently"}}}}}`
	}
	cases := map[string]struct {
		why, member, now, before string
		fail                     error
		code                     int32
		paths                    string
		warnings, calls          int
	}{
		"a CloneSet":                 {"the pod template is asked about", cloned, "", "", nil, 0, "", 0, 1},
		"a StatefulSet":              {"the pod template and the set are asked about", set, "", "", nil, 0, "", 0, 2},
		"a Deployment":               {"as a StatefulSet", deployed, "", "", nil, 0, "", 0, 2},
		"an unchanged template":      {"it was reviewed before", deployed, `{"replicas":5}`, `{}`, nil, 0, "", 0, 0},
		"an unknown strategy":        {"the API server finds it", deployed, gently(deployed, "strategy"), "", nil, 422, "spec.template.deploymentTemplate.spec.strategy.type", 0, 2},
		"an unknown update strategy": {"as for a Deployment", set, gently(set, "updateStrategy"), "", nil, 422, "spec.template.statefulSetTemplate.spec.updateStrategy.type", 0, 2},
		"every fault": {
			"all faults are reported at once", cloned, `{"replicas":-1,"topology":{"subsets":[{"name":"A"},{"name":"b"},{"name":"b"}]}}`, "",
			nil, 422, "spec.replicas spec.topology.subsets[0].name spec.topology.subsets[2].name", 0, 1,
		},
		"a stored fault":    {"the stored object has it", cloned, negative, negative, nil, 0, "", 1, 0},
		"a new fault":       {"the stored object has none", cloned, negative, `{}`, nil, 422, "spec.replicas", 0, 0},
		"another selector":  {"it cannot change", cloned, `{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`, `{}`, nil, 422, "spec.selector", 0, 0},
		"no verdict":        {"the API server does not answer about the template", cloned, "", "", errors.New("no answer"), 500, "", 0, 1},
		"two templates":     {"one is needed", cloned, `{"template":{"deploymentTemplate":{"metadata":{"labels":{"app":"web"}},"spec":{"template":{"metadata":{"labels":{"app":"web"}}}}}}}`, "", nil, 422, "spec.template", 0, -1},
		"no template":       {"one is needed", cloned, `{"template":null}`, "", nil, 422, "spec.template", 0, 0},
		"a patch of a list": {"it is no patch", cloned, `{"topology":{"subsets":[{"name":"a","patch":["x"]}]}}`, "", nil, 422, "spec.topology.subsets[0].patch", 0, 1},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				w, calls := newWebhooks(t, uniteddeployment.Options{}, c.fail)
				before := ""
				if c.before != "" {
					before = object(t, version, "default", c.member, c.before)
				}
				answer := w.Validate(t.Context(), request(version, object(t, version, "default", c.member, c.now), before))
				paths := plaintest.Paths(answer)
				code := plaintest.Code(answer)
				if code != c.code || c.paths != "" && strings.Join(paths, " ") != c.paths || len(answer.Warnings) != c.warnings {
					t.Errorf("%s: code %d at %q, warnings %q, %+v", c.why, code, paths, answer.Warnings, answer.Result)
				}
				if c.calls >= 0 && len(*calls) != c.calls {
					t.Errorf("%s: calls %q", c.why, *calls)
				}
			})
		}
	}
}

// Deletions are passed on, other kinds rejected, and webhooks need a client.
func TestOthers(t *testing.T) {
	asked := 0
	w, _ := newWebhooks(t, uniteddeployment.Options{Delete: func(context.Context, admission.Request) admission.Response {
		asked++
		return admission.Denied("protected")
	}}, nil)
	deletion := request("v1beta1", "", object(t, "v1beta1", "default", "cloneSetTemplate", ""))
	deletion.Operation = admissionv1.Delete
	if answer := w.Validate(t.Context(), deletion); answer.Allowed || asked != 1 {
		t.Errorf("a deletion: %+v", answer)
	}
	other := request("v1beta1", object(t, "v1beta1", "default", "cloneSetTemplate", ""), "")
	other.Kind.Kind = "Deployment"
	if answer := w.Validate(t.Context(), other); answer.Allowed {
		t.Error("another kind is admitted")
	}
	if _, err := uniteddeployment.New(nil, uniteddeployment.Options{}); err == nil {
		t.Error("no error without a client")
	}
}

// FuzzReview: whatever is sent, the handlers answer.
func FuzzReview(f *testing.F) {
	f.Add(`{"spec":{"template":{"cloneSetTemplate":{"spec":{"template":{"spec":{"containers":[]}}}}}}}`, `{}`)
	f.Add(`{"spec":{"replicas":3,"template":{"statefulSetTemplate":{"spec":{"volumeClaimTemplates":[{}],"template":[]}}},"topology":{"subsets":[{"patch":1}]}}}`, `null`)
	f.Add(`{"spec":{"template":{"deploymentTemplate":7},"topology":{"subsets":[{"minReplicas":"-5%","maxReplicas":"x"}]}}}`, `{"spec":[]}`)
	f.Fuzz(func(t *testing.T, now, before string) {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			w, _ := newWebhooks(t, uniteddeployment.Options{HostNetworkHostPorts: true}, nil)
			_ = w.Mutate(t.Context(), request(version, now, before))
			_ = w.Validate(t.Context(), request(version, now, before))
		}
	})
}

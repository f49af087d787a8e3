package advancedcronjob_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
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
	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
)

// server is an API server that knows one default of pod templates, and one rule of Jobs.
func server(made *[]string, ofJobs error) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			var o client.CreateOptions
			if o.ApplyOptions(opts); len(o.DryRun) == 0 {
				return errors.New("this would be stored")
			}
			if job, is := obj.(*batchv1.Job); is {
				*made = append(*made, "Job")
				if policy := job.Spec.Template.Spec.RestartPolicy; policy != "Never" && ofJobs == nil {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "", field.ErrorList{
						field.NotSupported(field.NewPath("spec", "template", "spec", "restartPolicy"), policy, []string{"Never"}),
					})
				}
				return ofJobs
			}
			*made = append(*made, obj.GetObjectKind().GroupVersionKind().Kind)
			template := obj.(*unstructured.Unstructured).Object["template"].(map[string]any)
			if pod, is := template["spec"].(map[string]any); is {
				pod["dnsPolicy"] = "ClusterFirst"
			}
			return nil
		},
	})
}

func request(version, now, stored string) admission.Request {
	object := func(spec string) runtime.RawExtension {
		if !strings.HasPrefix(spec, `{"`) {
			return runtime.RawExtension{Raw: []byte(spec)}
		}
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps.kruise.io/` + version + `","kind":"AdvancedCronJob","metadata":{"name":"web","namespace":"shop"},"spec":` + spec + `}`)}
	}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "shop", Name: "web", Object: object(now),
		Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "AdvancedCronJob"},
	}}
	if stored != "" {
		r.Operation, r.OldObject = admissionv1.Update, object(stored)
	}
	return r
}

const (
	jobs      = `{"schedule":"@daily","template":{"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}}}}`
	nodes     = `{"schedule":"@daily","template":{"broadcastJobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}}}}`
	pulls     = `{"schedule":"@daily","template":{"imageListPullJobTemplate":{"spec":{"images":["a"],"completionPolicy":{}}}}}`
	defaulted = `{"schedule":"@daily","concurrencyPolicy":"Allow","paused":false,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1,`
)

// What is missing is filled in, with one call at most, and for a template that has changed.
func TestMutate(t *testing.T) {
	const (
		common = `{"op":"add","path":"/spec/concurrencyPolicy","value":"Allow"},{"op":"add","path":"/spec/failedJobsHistoryLimit","value":1},` +
			`{"op":"add","path":"/spec/paused","value":false},{"op":"add","path":"/spec/successfulJobsHistoryLimit","value":3}`
		ofPod = `{"op":"add","path":"/spec/template/TEMPLATE/spec/template/spec/containers/0/imagePullPolicy","value":"Always"},` +
			`{"op":"add","path":"/spec/template/TEMPLATE/spec/template/spec/dnsPolicy","value":"ClusterFirst"}`
	)
	of := func(member string) string { return strings.ReplaceAll(ofPod, "TEMPLATE", member) }
	for name, c := range map[string]struct {
		why, version, now, stored string
		options                   advancedcronjob.Options
		want                      string
		calls                     int
	}{
		"Jobs":           {"pods get the defaults of the API server", "v1beta1", jobs, "", advancedcronjob.Options{}, common + "," + of("jobTemplate"), 1},
		"Jobs, v1alpha1": {"the same", "v1alpha1", jobs, "", advancedcronjob.Options{}, common + "," + of("jobTemplate"), 1},
		"BroadcastJobs": {"pods end", "v1beta1", nodes, "", advancedcronjob.Options{}, common +
			`,{"op":"add","path":"/spec/template/broadcastJobTemplate/spec/template/spec/restartPolicy","value":"OnFailure"},` + of("broadcastJobTemplate"), 1},
		"pulls": {"there are no pods", "v1beta1", pulls, "", advancedcronjob.Options{}, strings.Replace(common, "Allow", "Replace", 1) +
			`,{"op":"add","path":"/spec/template/imageListPullJobTemplate/spec/completionPolicy/type","value":"Always"},` +
			`{"op":"add","path":"/spec/template/imageListPullJobTemplate/spec/imagePullPolicy","value":"IfNotPresent"},` +
			`{"op":"add","path":"/spec/template/imageListPullJobTemplate/spec/pullPolicy","value":{"backoffLimit":3,"timeoutSeconds":600}}`, 0},
		"same template": {"it is not defaulted again", "v1beta1", defaulted + jobs[21:], jobs, advancedcronjob.Options{}, "", 0},
		"no defaults":   {"as the gate says", "v1beta1", defaulted + jobs[21:], "", advancedcronjob.Options{TemplateNoDefaults: true}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var made []string
			w, err := advancedcronjob.New(server(&made, nil), c.options)
			if err != nil {
				t.Fatal(err)
			}
			answer := w.Mutate(t.Context(), request(c.version, c.now, c.stored))
			want := c.want
			if want != "" {
				want = "[" + want + "]"
			}
			if diff := cmp.Diff(want, string(answer.Patch)); diff != "" || !answer.Allowed || len(made) != c.calls {
				t.Errorf("%s: allowed %t, calls %q (-want +got):\n%s", c.why, answer.Allowed, made, diff)
			}
		})
	}
}

// The rules have tests of their own; here is the way to an answer.
func TestValidate(t *testing.T) {
	always := strings.Replace(jobs, "Never", "Always", 1)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", errors.New("exceeded quota"))
	policy := apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "", field.ErrorList{field.Forbidden(nil, "no")})
	policy.ErrStatus.Message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
	for name, c := range map[string]struct {
		why, version, now, stored string
		ofJobs                    error
		code                      int32
		paths                     string
		calls, warnings           int
	}{
		"Jobs":                {"the API server validates pods and Jobs", "v1beta1", jobs, "", nil, 200, "", 2, 0},
		"Jobs, v1alpha1":      {"the same", "v1alpha1", jobs, "", nil, 200, "", 2, 0},
		"pods run for ever":   {"no Job would be created", "v1beta1", always, "", nil, 422, "spec.template.jobTemplate.spec.template.spec.restartPolicy", 2, 0},
		"quota":               {"it may have room at the next tick", "v1beta1", jobs, "", denied, 200, "", 2, 0},
		"policy":              {"it is about Jobs of today", "v1beta1", jobs, "", policy, 200, "", 2, 0},
		"schedule":            {"it can change, without a call", "v1beta1", strings.Replace(jobs, "@daily", "@hourly", 1), jobs, nil, 200, "", 0, 0},
		"another image":       {"templates stay", "v1beta1", strings.Replace(jobs, `"b"`, `"c"`, 1), jobs, nil, 422, "spec", 2, 0},
		"labels":              {"OpenKruise has not stored those of BroadcastJobs", "v1beta1", strings.Replace(nodes, `{"spec":{"t`, `{"metadata":{"labels":{"a":"b"}},"spec":{"t`, 1), nodes, nil, 200, "", 0, 0},
		"labels, v1alpha1":    {"the same", "v1alpha1", strings.Replace(nodes, `{"spec":{"t`, `{"metadata":{"labels":{"a":"b"}},"spec":{"t`, 1), nodes, nil, 200, "", 0, 0},
		"a fault that stays":  {"it is a warning", "v1beta1", strings.Replace(nodes, `"spec":{"t`, `"spec":{"failurePolicy":{"type":"continue"},"t`, 1), strings.Replace(nodes, `"spec":{"t`, `"spec":{"failurePolicy":{"type":"continue"},"t`, 1), nil, 200, "", 0, 1},
		"a fault mended":      {"the template changes there", "v1beta1", strings.Replace(nodes, `"spec":{"t`, `"spec":{"failurePolicy":{"type":"Continue"},"t`, 1), strings.Replace(nodes, `"spec":{"t`, `"spec":{"failurePolicy":{"type":"continue"},"t`, 1), nil, 200, "", 0, 0},
		"images":              {"they can change", "v1beta1", strings.Replace(pulls, `"a"`, `"c"`, 1), pulls, nil, 200, "", 0, 0},
		"two faults":          {"both are reported", "v1beta1", strings.Replace(strings.Replace(pulls, "@daily", "* * *", 1), `"a"`, `"a","a"`, 1), "", nil, 422, "spec.schedule;spec.template.imageListPullJobTemplate.spec.images[1]", 0, 0},
		"a fault from before": {"it is a warning", "v1beta1", strings.Replace(pulls, "@daily", "* * *", 1), strings.Replace(pulls, "@daily", "* * *", 1), nil, 200, "", 0, 1},
		"no template":         {"there is nothing to create", "v1alpha1", `{"schedule":"@daily","template":{}}`, "", nil, 422, "spec.template", 0, 0},
		"parallelism":         {"of each BroadcastJob", "v1beta1", strings.Replace(nodes, `"spec":{"t`, `"spec":{"parallelism":-1,"t`, 1), "", nil, 422, "spec.template.broadcastJobTemplate.spec.parallelism", 1, 0},
		"no JSON":             {"it cannot be read", "v1beta1", `[`, "", nil, 400, "", 0, 0},
		"no stored object":    {"it cannot be read", "v1beta1", jobs, `7`, nil, 400, "", 0, 0},
		"wrong type":          {"it cannot be read", "v1beta1", `{"schedule":7}`, "", nil, 400, "spec.schedule", 0, 0},
		"other version":       {"there is none", "v1", jobs, "", nil, 400, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var made []string
			w, err := advancedcronjob.New(server(&made, c.ofJobs), advancedcronjob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			answer := w.Validate(t.Context(), request(c.version, c.now, c.stored))
			paths := plaintest.Paths(answer)
			if answer.Result.Code != c.code || strings.Join(paths, ";") != c.paths || len(made) != c.calls || len(answer.Warnings) != c.warnings {
				t.Errorf("%s: code %d at %q, calls %q, warnings %q: %s", c.why, answer.Result.Code, paths, made, answer.Warnings, answer.Result.Message)
			}
		})
	}
	if _, err := advancedcronjob.New(nil, advancedcronjob.Options{}); err == nil {
		t.Error("there is no client")
	}
}

// FuzzRequests: no request makes the webhooks panic, and what is rejected has a reason.
func FuzzRequests(f *testing.F) {
	f.Add(jobs, nodes)
	f.Add(pulls, `{"template":{"jobTemplate":7}}`)
	f.Add(`{"template":{"jobTemplate":{"spec":{"template":7}},"broadcastJobTemplate":null}}`, `{"template":null}`)
	f.Fuzz(func(t *testing.T, now, stored string) {
		var made []string
		w, err := advancedcronjob.New(server(&made, nil), advancedcronjob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			r := request(version, now, stored)
			for _, answer := range []admission.Response{w.Mutate(t.Context(), r), w.Validate(t.Context(), r)} {
				if !answer.Allowed && answer.Result.Message == "" {
					t.Errorf("rejected without a reason: %+v", answer.Result)
				}
			}
		}
	})
}

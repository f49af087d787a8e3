package advancedcronjob_test

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// review sends a request to the webhook at a path, in front of an API server that knows one rule of Jobs, or answers
// about Jobs with an error. It returns what the API server is asked.
func review(t *testing.T, o kinds.Options, ofJobs error, path string, c [3]string) (plaintest.Answer, []string) {
	t.Helper()
	server := &plaintest.Server{Rejects: func(o client.Object) error {
		job, is := o.(*batchv1.Job)
		if !is || ofJobs != nil {
			return map[bool]error{true: ofJobs}[is]
		}
		if policy := job.Spec.Template.Spec.RestartPolicy; policy != "Never" {
			at := field.NewPath("spec", "template", "spec", "restartPolicy")
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "",
				field.ErrorList{field.NotSupported(at, policy, []string{"Never"})})
		}
		return nil
	}}
	w, err := advancedcronjob.New(server.Client(), o)
	if err != nil {
		t.Fatal(err)
	}
	object := func(spec string) string {
		if spec == "" {
			return ""
		}
		return `{"metadata":{"name":"web","namespace":"shop"},"spec":` + spec + `}`
	}
	version, now, stored := c[0], c[1], c[2]
	r := plaintest.Request(plaintest.Kind("AdvancedCronJob"), version, object(now), object(stored))
	return w[path](t.Context(), r), server.Asked
}

const (
	jobs = `{"schedule":"@daily","template":{"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",` +
		`"containers":[{"name":"a","image":"b"}]}}}}}}`
	nodes = `{"schedule":"@daily",` +
		`"template":{"broadcastJobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}}}}`
	pulls = `{"schedule":"@daily","template":{"imageListPullJobTemplate":{"spec":{"images":["a"],` +
		`"completionPolicy":{}}}}}`
	defaulted = `{"schedule":"@daily","concurrencyPolicy":"Allow","paused":false,"successfulJobsHistoryLimit":3,` +
		`"failedJobsHistoryLimit":1,`
)

// What is missing is filled in, with one call at most, and for a template that has changed.
func TestMutate(t *testing.T) {
	const (
		common = `{"op":"add","path":"/spec/concurrencyPolicy","value":"Allow"},{"op":"add",` +
			`"path":"/spec/failedJobsHistoryLimit","value":1},` +
			`{"op":"add","path":"/spec/paused","value":false},{"op":"add","path":"/spec/successfulJobsHistoryLimit","value":3}`
		ofPod = `{"op":"add","path":"/spec/template/TEMPLATE/spec/template/spec/containers/0/imagePullPolicy",` +
			`"value":"Always"},` +
			`{"op":"add","path":"/spec/template/TEMPLATE/spec/template/spec/dnsPolicy","value":"ClusterFirst"}`
	)
	of := func(member string) string { return strings.ReplaceAll(ofPod, "TEMPLATE", member) }
	for name, c := range map[string]struct {
		why, version, now, stored string
		options                   kinds.Options
		want                      string
		calls                     int
	}{
		"Jobs": {
			why: "pods get the defaults of the API server", version: "v1beta1", now: jobs, options: kinds.Options{},
			want: common + "," + of("jobTemplate"), calls: 1,
		},
		"Jobs, v1alpha1": {"the same", "v1alpha1", jobs, "", kinds.Options{}, common + "," + of("jobTemplate"), 1},
		"BroadcastJobs": {
			why: "pods end", version: "v1beta1", now: nodes, options: kinds.Options{}, want: common +
				`,{"op":"add","path":"/spec/template/broadcastJobTemplate/spec/template/spec/restartPolicy",` +
				`"value":"OnFailure"},` + of("broadcastJobTemplate"),
			calls: 1,
		},
		"pulls": {
			why: "there are no pods", version: "v1beta1", now: pulls, options: kinds.Options{},
			want: strings.Replace(common, "Allow", "Replace", 1) +
				`,{"op":"add","path":"/spec/template/imageListPullJobTemplate/spec/completionPolicy/type","value":"Always"},` +
				`{"op":"add","path":"/spec/template/imageListPullJobTemplate/spec/imagePullPolicy","value":"IfNotPresent"},` +
				`{"op":"add","path":"/spec/template/imageListPullJobTemplate/spec/pullPolicy","value":{"backoffLimit":3,` +
				`"timeoutSeconds":600}}`,
		},
		"same template": {"it is not defaulted again", "v1beta1", defaulted + jobs[21:], jobs, kinds.Options{}, "", 0},
		"no defaults": {
			why: "as the gate says", version: "v1beta1", now: defaulted + jobs[21:],
			options: kinds.Options{TemplateNoDefaults: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, asked := review(t, c.options, nil, advancedcronjob.MutatePath, [3]string{c.version, c.now, c.stored})
			if plaintest.Patches(t, c.why, c.want, answer); len(asked) != c.calls {
				t.Errorf("%s: asked about %q", c.why, asked)
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
		"Jobs":           {"the API server validates pods and Jobs", "v1beta1", jobs, "", nil, 0, "", 2, 0},
		"Jobs, v1alpha1": {"the same", "v1alpha1", jobs, "", nil, 0, "", 2, 0},
		"pods run for ever": {
			why: "no Job would be created", version: "v1beta1", now: always, code: 422,
			paths: "spec.template.jobTemplate.spec.template.spec.restartPolicy", calls: 2,
		},
		"quota":  {"it may have room at the next tick", "v1beta1", jobs, "", denied, 0, "", 2, 0},
		"policy": {"it is about Jobs of today", "v1beta1", jobs, "", policy, 0, "", 2, 0},
		"schedule": {
			why: "it can change, without a call", version: "v1beta1", now: strings.Replace(jobs, "@daily", "@hourly", 1),
			stored: jobs,
		},
		"another image": {
			why: "templates stay", version: "v1beta1", now: strings.Replace(jobs, `"b"`, `"c"`, 1), stored: jobs, code: 422,
			paths: "spec", calls: 2,
		},
		"labels": {
			why: "OpenKruise has not stored those of BroadcastJobs", version: "v1beta1",
			now: strings.Replace(nodes, `{"spec":{"t`, `{"metadata":{"labels":{"a":"b"}},"spec":{"t`, 1), stored: nodes,
		},
		"labels, v1alpha1": {
			why: "the same", version: "v1alpha1",
			now: strings.Replace(nodes, `{"spec":{"t`, `{"metadata":{"labels":{"a":"b"}},"spec":{"t`, 1), stored: nodes,
		},
		"a fault that stays": {
			why: "it is a warning", version: "v1beta1",
			now:    strings.Replace(nodes, `"spec":{"t`, `"spec":{"failurePolicy":{"type":"continue"},"t`, 1),
			stored: strings.Replace(nodes, `"spec":{"t`, `"spec":{"failurePolicy":{"type":"continue"},"t`, 1), warnings: 1,
		},
		"images": {why: "they can change", version: "v1beta1", now: strings.Replace(pulls, `"a"`, `"c"`, 1), stored: pulls},
		"two faults": {
			why: "both are reported", version: "v1beta1",
			now: strings.Replace(strings.Replace(pulls, "@daily", "* * *", 1), `"a"`, `"a","a"`, 1), code: 422,
			paths: "spec.schedule spec.template.imageListPullJobTemplate.spec.images[1]",
		},
		"no template": {
			why: "there is nothing to create", version: "v1alpha1", now: `{"schedule":"@daily","template":{}}`, code: 422,
			paths: "spec.template",
		},
		"parallelism": {
			why: "of each BroadcastJob", version: "v1beta1",
			now: strings.Replace(nodes, `"spec":{"t`, `"spec":{"parallelism":-1,"t`, 1), code: 422,
			paths: "spec.template.broadcastJobTemplate.spec.parallelism", calls: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, asked := review(t, kinds.Options{}, c.ofJobs, advancedcronjob.ValidatePath,
				[3]string{c.version, c.now, c.stored})
			plaintest.Answers(t, c.why, plaintest.Want{Code: c.code, Paths: c.paths, Warnings: c.warnings}, answer)
			if len(asked) != c.calls {
				t.Errorf("%s: asked about %q", c.why, asked)
			}
		})
	}
}

package ephemeraljob_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
)

// of returns a job with containers and other fields of the spec.
func of(containers, more string) string {
	return `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"ephemeralContainers":[` + containers + `]}` + more + `}}`
}

const shell = `{"name":"shell","image":"busybox:1","targetContainerName":"main","volumeMounts":[{"name":"data","mountPath":"/d"}]}`

// api is an API server that refuses containers with the command "bad" and knows no field "comand". It keeps what it was asked.
type api struct {
	asked []string
	fail  error
}

func (a *api) client() ephemeraljob.API {
	return interceptor.NewClient(nil, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		data, err := json.Marshal(obj.(*unstructured.Unstructured).Object["template"])
		if err != nil {
			return err
		}
		a.asked = append(a.asked, string(data))
		options := (&client.CreateOptions{}).ApplyOptions(o)
		switch {
		case a.fail != nil:
			return a.fail
		case len(options.DryRun) == 0:
			return errors.New("not a dry run")
		case options.FieldValidation == metav1.FieldValidationStrict && strings.Contains(string(data), "comand"):
			return apierrors.NewBadRequest(`strict decoding error: unknown field "template.spec.containers[0].comand"`)
		case strings.Contains(string(data), `"bad"`):
			return apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "dry-run", field.ErrorList{
				field.Invalid(field.NewPath("template", "spec", "containers").Index(0).Child("env").Index(0).Child("name"), "bad", "no"),
				field.Invalid(field.NewPath("template", "spec", "volumes").Index(0), "bad", "no"),
			})
		}
		return nil
	}})
}

// TestValidate: which jobs are rejected, with which paths and which code, and what the API server is asked.
func TestValidate(t *testing.T) {
	const containers, first = "spec.template.ephemeralContainers", "spec.template.ephemeralContainers[0]"
	leaving := func(object string) string {
		return strings.Replace(object, `"name":"a"}`, `"name":"a","deletionTimestamp":"2030-01-01T00:00:00Z"}`, 1)
	}
	for name, c := range map[string]struct {
		why, now, before string
		fail             error
		change           func(*admission.Request)
		code             int32
		paths            string
		warnings, asked  int
	}{
		"good":         {why: "the API server validates the containers", now: of(shell, ``), asked: 1},
		"an empty one": {why: "both faults are reported, and the API server is not asked", now: of(`{}`, ``), code: 422, paths: first + ".name " + first + ".image"},
		"a duplicate":  {why: "the second one is to blame", now: of(shell+`,`+shell, ``), code: 422, paths: containers + "[1].name"},
		"too many values": {
			why: "no container needs them", now: of(`{"name":"a","image":"b","args":[`+strings.Repeat(`"a",`, 20_000)+`"a"]}`, ``), code: 422, paths: "spec.template",
		},
		"of the API server": {why: "its paths are those of the job", now: of(`{"name":"a","image":"b","env":[{"name":"bad"}]}`, ``), code: 422, paths: first + ".env[0].name " + containers, asked: 1},
		"an unknown field":  {why: "it is a warning", now: of(`{"name":"a","image":"b","comand":["x"]}`, ``), warnings: 1, asked: 2},
		"no verdict":        {why: "the API server does not answer", now: of(shell, ``), fail: errors.New("down"), code: 500, asked: 1},
		"what can change":   {why: "the template is not validated again", now: of(shell, `,"paused":true,"parallelism":3`), before: of(shell, ``)},
		"another template":  {why: "pods keep what they have", now: of(`{"name":"a","image":"b"}`, ``), before: of(shell, ``), code: 422, paths: "spec.template"},
		"a stored fault":    {why: "it is a warning", now: of(shell, `,"parallelism":-1,"paused":true`), before: of(shell, `,"parallelism":-1`), warnings: 1},
		"a new fault":       {why: "the stored job does not have it", now: of(shell, `,"parallelism":-1`), before: of(shell, ``), code: 422, paths: "spec.parallelism"},
		"leaving":           {why: "finalizers can be removed", now: of(`{}`, ``), before: leaving(of(shell, ``))},
		"malformed":         {why: "what cannot be decoded is an error", now: `{"spec":{"template":{"ephemeralContainers":7}}}`, code: 400, paths: "spec.template.ephemeralContainers"},
		"malformed before":  {why: "it is an error", now: of(shell, ``), before: `[]`, code: 400},
		"no object":         {why: "it is an error", now: ``, code: 400},
		"a null container":  {why: "it is an empty one", now: of(`null`, ``), code: 422, paths: first + ".name " + first + ".image"},
		"a status":          {why: "a status is the controller's", now: `{}`, change: func(r *admission.Request) { r.SubResource = "status" }},
		"another version":   {why: "there is one", now: of(shell, ``), code: 400, change: func(r *admission.Request) { r.Resource.Version = "v1beta1" }},
		"another resource":  {why: "it is an error", now: of(shell, ``), code: 400, change: func(r *admission.Request) { r.Resource.Resource = "broadcastjobs" }},
	} {
		t.Run(name, func(t *testing.T) {
			server := &api{fail: c.fail}
			w, err := ephemeraljob.New(server.client(), ephemeraljob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			req := request(c.now, c.before)
			if c.change != nil {
				c.change(&req)
			}
			got := w.Validate(t.Context(), req)
			if got.Allowed != (c.code == 0) || !got.Allowed && got.Result.Code != c.code || len(got.Warnings) != c.warnings || len(server.asked) != c.asked {
				t.Fatalf("%s: %+v, warnings %q, %d requests", c.why, got.Result, got.Warnings, len(server.asked))
			}
			paths := plaintest.Paths(got)
			if strings.Join(paths, " ") != c.paths {
				t.Errorf("%s: paths %q", c.why, paths)
			}
		})
	}
	if _, err := ephemeraljob.New(nil, ephemeraljob.Options{}); err == nil {
		t.Error("no error without a client")
	}
}

func request(now, before string) admission.Request {
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: "a", Namespace: "shop", Object: runtime.RawExtension{Raw: []byte(now)},
		Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "ephemeraljobs"},
	}}
	if before != "" {
		req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(before)}
	}
	return req
}

// The API server is asked about ordinary containers, without a target, with a volume for each mount.
func TestTemplate(t *testing.T) {
	server := &api{}
	w, err := ephemeraljob.New(server.client(), ephemeraljob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	second := `{"name":"b","image":"b","volumeMounts":[{"name":"data","mountPath":"/d"},{"name":"A b","mountPath":"/e"}],"volumeDevices":[{"name":"disk","devicePath":"/x"}]}`
	if got := w.Validate(t.Context(), request(of(shell+`,`+second, ``), "")); !got.Allowed {
		t.Fatalf("%+v", got.Result)
	}
	volume := func(name string) string {
		return `{"name":"` + name + `","persistentVolumeClaim":{"claimName":"dry-run"}}`
	}
	want := `{"metadata":{"labels":{"app":"dry-run"}},"spec":{"containers":[` +
		`{"image":"busybox:1","name":"shell","volumeMounts":[{"mountPath":"/d","name":"data"}]},` +
		`{"image":"b","name":"b","volumeDevices":[{"devicePath":"/x","name":"disk"}],"volumeMounts":[{"mountPath":"/d","name":"data"},{"mountPath":"/e","name":"A b"}]}],` +
		`"volumes":[` + volume("data") + `,` + volume("disk") + `]}}`
	if server.asked[0] != want {
		t.Errorf("asked %s\nwant  %s", server.asked[0], want)
	}
}

// FuzzValidate: whatever is sent, the handler answers.
func FuzzValidate(f *testing.F) {
	f.Add(of(shell, ``), `{}`)
	f.Add(`{"spec":{"template":{"ephemeralContainers":[null,{"volumeMounts":[{}]}]}}}`, of(shell, ``))
	f.Add(`{"spec":[]}`, `null`)
	f.Fuzz(func(t *testing.T, now, before string) {
		w, err := ephemeraljob.New((&api{}).client(), ephemeraljob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Validate(t.Context(), request(now, before))
		_ = w.Validate(t.Context(), request(now, ""))
	})
}

package podprobemarker_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
)

const (
	probe = `{"name":"a","containerName":"main","podConditionType":"example.com/a","probe":{"exec":{"command":["true"]}}}`
	good  = `{"metadata":{"name":"m"},"spec":{"selector":{"matchLabels":{"app":"web"}},"probes":[` + probe + `]}}`
)

// TestValidate: which markers are rejected, with which code and paths. What exactly is invalid is tested in package podprobe.
func TestValidate(t *testing.T) {
	without := func(text, with string) string { return strings.Replace(good, text, with, 1) }
	for name, c := range map[string]struct {
		why         string
		now, before string
		off         bool
		change      func(*admission.Request)
		code        int32
		paths       []string
		warnings    int
	}{
		"good":            {why: "a valid marker", now: good},
		"nothing":         {why: "all faults are reported at once", now: `{"spec":{}}`, code: 400, paths: []string{"spec.selector", "spec.probes"}},
		"off":             {why: "without a daemon nothing probes", now: good, off: true, code: 403},
		"other probes":    {why: "the probes can change", now: without(`"true"`, `"false"`), before: good},
		"other selector":  {why: "the selector cannot", now: without("web", "db"), before: good, code: 400, paths: []string{"spec.selector"}},
		"new fault":       {why: "an update is judged as well", now: without(`["true"]`, `[]`), before: good, code: 400, paths: []string{"spec.probes[0].probe.exec.command"}},
		"stored fault":    {why: "a fault that is stored already is a warning", now: without(`["true"]`, `[]`), before: without(`["true"]`, `[]`), warnings: 1},
		"reserved":        {why: "a condition of the kubelet is not written", now: without("example.com/a", "Ready"), warnings: 1},
		"malformed":       {why: "what cannot be decoded is an error", now: `{"spec":{"probes":1}}`, code: 400, paths: []string{"spec.probes"}},
		"too large":       {why: "a period beyond 32 bits cannot be decoded", now: without(`"exec"`, `"periodSeconds":99999999999,"exec"`), code: 400, paths: []string{"spec.probes.probe.Probe.periodSeconds"}},
		"unknown version": {why: "the kind has one version", now: good, change: func(r *admission.Request) { r.Resource.Version = "v1beta1" }, code: 400},
		"other kind":      {why: "another kind is an error", now: good, change: func(r *admission.Request) { r.Resource.Resource = "pods" }, code: 400},
		"status":          {why: "a status is the controller's", now: `{}`, change: func(r *admission.Request) { r.SubResource = "status" }},
		"leaving": {
			why: "a marker that is deleted can lose its finalizers, also without a daemon", now: `{"spec":{}}`, off: true,
			before: `{"metadata":{"finalizers":["x/y"],"deletionTimestamp":"2030-01-01T00:00:00Z"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "shop", Name: "m", Object: runtime.RawExtension{Raw: []byte(c.now)},
				Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "podprobemarkers"},
			}}
			if c.before != "" {
				req.Operation, req.OldObject.Raw = admissionv1.Update, []byte(c.before)
			}
			if c.change != nil {
				c.change(&req)
			}
			answer := podprobemarker.New(podprobemarker.Options{Off: c.off}).Validate(t.Context(), req)
			if answer.Allowed != (c.code == 0) || !answer.Allowed && answer.Result.Code != c.code || len(answer.Warnings) != c.warnings {
				t.Fatalf("%s: %+v with warnings %q", c.why, answer.Result, answer.Warnings)
			}
			paths := plaintest.Paths(answer)
			if !slices.Equal(paths, c.paths) {
				t.Errorf("%s: faults at %q, want %q", c.why, paths, c.paths)
			}
		})
	}
}

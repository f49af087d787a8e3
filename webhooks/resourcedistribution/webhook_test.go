package resourcedistribution_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
)

const (
	secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","namespace":"ignored"},"stringData":{"user":"reader"}}`
	good   = `{"metadata":{"name":"a"},"spec":{"resource":` + secret + `,"targets":{}}}`
)

// TestValidate: which distributions are rejected, with which paths and which code, in both versions.
func TestValidate(t *testing.T) {
	of := func(resource, targets string) string {
		return `{"metadata":{"name":"a"},"spec":{"resource":` + resource + `,"targets":{` + targets + `}}}`
	}
	for name, c := range map[string]struct {
		why         string
		now, before string
		versions    []string
		off         bool
		change      func(*admission.Request)
		code        int32
		paths       string
		warnings    int
	}{
		"good":           {why: "empty targets are accepted", now: good},
		"a selector":     {why: "its name in v1beta1", versions: []string{"v1beta1"}, now: of(secret, `"namespaceSelector":{"matchLabels":{"a b":"c"}}`), code: 422, paths: "spec.targets.namespaceSelector"},
		"an older one":   {why: "its name in v1alpha1", versions: []string{"v1alpha1"}, now: of(secret, `"namespaceLabelSelector":{"matchLabels":{"a b":"c"}}`), code: 422, paths: "spec.targets.namespaceSelector"},
		"three faults":   {why: "all are reported at once", now: of(`{}`, `"includedNamespaces":{"list":[{"name":"INVALID"},{"name":"a"}]},"excludedNamespaces":{"list":[{"name":"a"}]}`), code: 422, paths: "spec.resource;spec.targets.includedNamespaces;spec.targets"},
		"a Deployment":   {why: "Secrets and ConfigMaps alone", now: of(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`, ``), code: 422, paths: "spec.resource"},
		"off":            {why: "nothing would be distributed", now: good, off: true, code: 403},
		"off, an update": {why: "nothing would be distributed", now: good, before: good, off: true, code: 403},
		"off, leaving":   {why: "finalizers can be removed", now: good, off: true, before: strings.Replace(good, `"name":"a"}`, `"name":"a","deletionTimestamp":"2030-01-01T00:00:00Z"}`, 1)},
		"data changes":   {why: "the content can change", now: strings.Replace(good, "reader", "writer", 1), before: good},
		"targets change": {why: "targets can change", now: of(secret, `"allNamespaces":true`), before: good},
		"another name":   {why: "the copies would stay", now: strings.Replace(good, `"pull"`, `"push"`, 1), before: good, code: 422, paths: "spec.resource"},
		"another kind":   {why: "the copies would stay", now: strings.Replace(strings.Replace(good, "Secret", "ConfigMap", 1), "stringData", "data", 1), before: good, code: 422, paths: "spec.resource"},
		"a stored fault": {why: "it is a warning", now: of(secret, `"includedNamespaces":{"list":[{}]},"allNamespaces":true`), before: of(secret, `"includedNamespaces":{"list":[{}]}`), warnings: 1},
		"a mended kind":  {why: "what could not work can be mended", now: good, before: of(`{"apiVersion":"apps/v1","kind":"Deployment"}`, ``)},
		"the manager's own": {
			why: "the configuration of the manager is there", code: 422, paths: "spec.targets.includedNamespaces",
			now: of(secret, `"includedNamespaces":{"list":[{"name":"a"},{"name":"kruise-system"}]}`),
		},
		"all but the manager's": {why: "it is skipped", now: of(secret, `"allNamespaces":true`)},
		"without the manager's": {why: "it may be excluded", now: of(secret, `"allNamespaces":true,"excludedNamespaces":{"list":[{"name":"kruise-system"}]}`)},
		"a stored one": {
			why: "it is a warning: the copy is not written any more", warnings: 1, before: of(secret, `"includedNamespaces":{"list":[{"name":"kruise-system"}]}`),
			now: of(secret, `"includedNamespaces":{"list":[{"name":"kruise-system"},{"name":"a"}]}`),
		},
		"unknown version":  {why: "it is an error", now: good, versions: []string{"v2"}, code: 400},
		"malformed":        {why: "what cannot be decoded is an error", now: `{"spec":{"targets":7}}`, code: 400, paths: "spec.targets"},
		"no object":        {why: "it is an error", now: ``, code: 400},
		"a status":         {why: "a status is the controller's", now: `{}`, change: func(r *admission.Request) { r.SubResource = "status" }},
		"another resource": {why: "it is an error", now: good, code: 400, change: func(r *admission.Request) { r.Resource.Resource = "clonesets" }},
	} {
		if c.versions == nil {
			c.versions = []string{"v1alpha1", "v1beta1"}
		}
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Operation: admissionv1.Create, Name: "a", Object: runtime.RawExtension{Raw: []byte(c.now)},
					Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: version, Resource: "resourcedistributions"},
				}}
				if c.before != "" {
					req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(c.before)}
				}
				if c.change != nil {
					c.change(&req)
				}
				got := resourcedistribution.New(resourcedistribution.Options{On: !c.off, Namespace: "kruise-system"}).Validate(t.Context(), req)
				if got.Allowed != (c.code == 0) || !got.Allowed && got.Result.Code != c.code || len(got.Warnings) != c.warnings {
					t.Fatalf("%s: %+v, warnings %q", c.why, got.Result, got.Warnings)
				}
				paths := plaintest.Paths(got)
				if strings.Join(paths, ";") != c.paths {
					t.Errorf("%s: paths %q", c.why, paths)
				}
				if got.Result != nil && strings.Contains(got.Result.Message, "reader") {
					t.Errorf("the answer has a value of the Secret: %s", got.Result.Message)
				}
			})
		}
	}
}

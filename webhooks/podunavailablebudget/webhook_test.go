package podunavailablebudget_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
)

// shelf has the budgets of one namespace.
type shelf struct {
	all   []*policyv1beta1.PodUnavailableBudget
	fault error
}

func (s shelf) Objects(_ context.Context, namespace string) ([]*policyv1beta1.PodUnavailableBudget, error) {
	if namespace != "shop" {
		return nil, s.fault
	}
	return s.all, s.fault
}

func selecting(name, app string) *policyv1beta1.PodUnavailableBudget {
	return &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: policyv1beta1.PodUnavailableBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
}

const good = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}}`

// TestValidate: which budgets are rejected, with which paths, and that each rejection is 400.
func TestValidate(t *testing.T) {
	meta := func(annotations string) string {
		return `{"metadata":{"name":"a","annotations":{` + annotations + `}},"spec":{"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}}`
	}
	spec := func(text string) string { return `{"metadata":{"name":"a"},"spec":{` + text + `}}` }
	for name, c := range map[string]struct {
		why         string
		version     string
		now, before string
		namespace   string
		others      shelf
		off         bool
		change      func(*admission.Request)
		code        int32
		paths       []string
		warnings    int
	}{
		"good":                       {why: "a budget with a selector and an amount", now: good},
		"good in v1alpha1":           {why: "the older version has the same fields", version: "v1alpha1", now: meta(`"kruise.io/pub-protect-operations":"DELETE, EVICT","pub.kruise.io/protect-total-replicas":"15"`)},
		"nothing":                    {why: "all faults are reported at once", now: spec(``), code: 400, paths: []string{"spec.selector, targetRef", "spec.maxUnavailable, minAvailable"}},
		"both":                       {why: "a selector excludes a target", now: spec(`"selector":{"matchLabels":{"a":"b"}},"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"maxUnavailable":1`), code: 400, paths: []string{"spec.selector, targetRef"}},
		"incomplete target":          {why: "a target has three fields", now: spec(`"targetRef":{"kind":"Deployment"},"maxUnavailable":1`), code: 400, paths: []string{"spec.targetRef"}},
		"percentage":                 {why: "an amount is at most 100%", now: spec(`"selector":{"matchLabels":{"a":"b"}},"maxUnavailable":"101%"`), code: 400, paths: []string{"spec.maxUnavailable"}},
		"operation":                  {why: "an operation is one of four", now: spec(`"selector":{"matchLabels":{"a":"b"}},"maxUnavailable":1,"protectOperations":["BOGUS"]`), code: 400, paths: []string{"spec.protectOperations[0]"}},
		"older operation":            {why: "v1alpha1 has the operations in an annotation", version: "v1alpha1", now: meta(`"kruise.io/pub-protect-operations":"BOGUS"`), code: 400, paths: []string{"metadata.annotations[kruise.io/pub-protect-operations]"}},
		"older operation on v1beta1": {why: "v1beta1 ignores that annotation", now: meta(`"kruise.io/pub-protect-operations":"BOGUS"`)},
		"older total":                {why: "and the total in another one", version: "v1alpha1", now: meta(`"pub.kruise.io/protect-total-replicas":"not-a-number"`), code: 400, paths: []string{"metadata.annotations[pub.kruise.io/protect-total-replicas]"}},
		"overlap":                    {why: "two budgets must not select the same pods", now: good, others: shelf{all: []*policyv1beta1.PodUnavailableBudget{selecting("b", "web")}}, code: 400, paths: []string{"spec.selector"}},
		"itself":                     {why: "a budget does not overlap with itself", now: good, others: shelf{all: []*policyv1beta1.PodUnavailableBudget{selecting("a", "web")}}},
		"other namespace":            {why: "budgets of other namespaces do not count", now: good, namespace: "other", others: shelf{all: []*policyv1beta1.PodUnavailableBudget{selecting("b", "web")}}},
		"other selector":             {why: "an update cannot change the pods", now: good, before: strings.Replace(good, "web", "db", 1), code: 400, paths: []string{"spec.selector, targetRef"}},
		"other amount":               {why: "an update can change the amount", now: strings.Replace(good, ":1}", `:"20%"}`, 1), before: good},
		"stored fault": {
			why: "a fault that is stored already is a warning", warnings: 1,
			now:    `{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"selector":{"matchLabels":{"app":"web"}}}}`,
			before: `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}}}}`,
		},
		"leaving": {
			why: "a budget that is deleted can lose its finalizers", before: good, now: `{"metadata":{"name":"a","deletionTimestamp":"2030-01-01T00:00:00Z"},"spec":{}}`,
			change: func(r *admission.Request) {
				r.OldObject.Raw = []byte(`{"metadata":{"name":"a","finalizers":["x/y"],"deletionTimestamp":"2030-01-01T00:00:00Z"}}`)
			},
		},
		"off":             {why: "with both gates off no budget is heeded", now: good, off: true, code: 400, paths: nil},
		"unknown version": {why: "an unknown version is an error", version: "v2", now: good, code: 400},
		"malformed":       {why: "what cannot be decoded is an error", now: `{"spec":{"selector":1}}`, code: 400},
		"too large":       {why: "an amount beyond 32 bits is no amount", now: strings.Replace(good, ":1}", ":99999999999}", 1), code: 400},
		"no list":         {why: "where the others are unknown there is no answer", now: good, others: shelf{fault: errors.New("no cache")}, code: 500},
		"status":          {why: "a status is the controller's", now: good, change: func(r *admission.Request) { r.SubResource = "status" }},
	} {
		t.Run(name, func(t *testing.T) {
			version, namespace := c.version, c.namespace
			if version == "" {
				version = "v1beta1"
			}
			if namespace == "" {
				namespace = "shop"
			}
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: namespace, Name: "a", Object: runtime.RawExtension{Raw: []byte(c.now)}, DryRun: ptr.To(false),
				Resource: metav1.GroupVersionResource{Group: "policy.kruise.io", Version: version, Resource: "podunavailablebudgets"},
			}}
			if c.before != "" {
				req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(c.before)}
			}
			if c.change != nil {
				c.change(&req)
			}
			w, err := podunavailablebudget.New(c.others, podunavailablebudget.Options{Off: c.off})
			if err != nil {
				t.Fatal(err)
			}
			got := w.Validate(t.Context(), req)
			if got.Allowed != (c.code == 0) || !got.Allowed && got.Result.Code != c.code || len(got.Warnings) != c.warnings {
				t.Fatalf("%s: %+v, warnings %q", c.why, got.Result, got.Warnings)
			}
			fields := plaintest.Paths(got)
			if c.paths != nil && strings.Join(fields, ";") != strings.Join(c.paths, ";") {
				t.Errorf("%s: paths %q", c.why, fields)
			}
		})
	}
}

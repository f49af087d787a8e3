package workloadspread_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

// shelf has one WorkloadSpread, and one Deployment where it has a template.
type shelf struct {
	other    *appsv1beta1.WorkloadSpread
	template map[string]any
	fault    error

	reads, creates int
}

func (s *shelf) In(namespace string) []*appsv1beta1.WorkloadSpread {
	if s.other == nil || namespace != "shop" {
		return nil
	}
	return []*appsv1beta1.WorkloadSpread{s.other}
}

func (*shelf) Allowed(context.Context) []schema.GroupKind {
	return []schema.GroupKind{{Group: "example.com", Kind: "Game"}}
}

func (*shelf) RESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	m.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	return m
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads++
	if s.fault != nil {
		return s.fault
	}
	if o, is := into.(*unstructured.Unstructured); is && s.template != nil && key.Name == "web" {
		return unstructured.SetNestedMap(o.Object, s.template, "spec", "template")
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// Create is the dry run of a template: an image must be there.
func (s *shelf) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.creates++
	raw, _ := o.(*unstructured.Unstructured)
	containers, _, _ := unstructured.NestedSlice(raw.Object, "template", "spec", "containers")
	for _, c := range containers {
		if container, _ := c.(map[string]any); container["image"] == nil {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "x", nil)
		}
	}
	return nil
}

const good = `{"metadata":{"name":"s"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"subsets":[{"name":"a","maxReplicas":3},{"name":"b"}]}}`

// TestValidate: which objects are rejected, with which code and paths. What exactly is invalid is tested in package validation.
func TestValidate(t *testing.T) {
	with := func(text, instead string) string { return strings.Replace(good, text, instead, 1) }
	const tolerates = `{"name":"b","tolerations":[{"key":"a","value":"-"}]}`
	patched := func(patch string) string { return with(`{"name":"b"}`, `{"name":"b","patch":`+patch+`}`) }
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "m"}}}}
	other := &appsv1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}
	other.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	for name, c := range map[string]struct {
		why         string
		version     string
		now, before string
		shelf       shelf
		off         bool
		change      func(*admission.Request)
		code        int32
		paths       []string
		warnings    int
		reads       int
		creates     int
	}{
		"good":             {why: "nothing is read without a patch", now: good},
		"good in v1alpha1": {why: "the older version is converted", version: "v1alpha1", now: with(`{"name":"b"}`, `{"name":"b","requiredNodeSelectorTerm":{"matchExpressions":[{"key":"z","operator":"Exists"}]}}`)},
		"a fault of v1alpha1": {
			why: "the path is that of v1beta1", version: "v1alpha1", now: with(`{"name":"b"}`, `{"name":"b","requiredNodeSelectorTerm":{"matchExpressions":[{"key":"z","operator":"Is"}]}}`),
			code: 400, paths: []string{"spec.subsets[1].requiredNodeSelector"},
		},
		"nothing":             {why: "all faults are reported at once", now: `{"metadata":{"name":"s"},"spec":{"subsets":[]}}`, code: 400, paths: []string{"spec.targetRef", "spec.subsets"}},
		"off":                 {why: "nothing would heed the object", now: good, off: true, code: 403},
		"a further kind":      {why: "the installation allows the kind", now: with(`"apps/v1","kind":"Deployment"`, `"example.com/v1","kind":"Game"`)},
		"another kind":        {why: "the installation does not", now: with(`"apps/v1","kind":"Deployment"`, `"example.com/v1","kind":"Toy"`), code: 400, paths: []string{"spec.targetRef"}},
		"a conflict":          {why: "one spreads the pods of a target", now: good, shelf: shelf{other: other}, code: 400, paths: []string{"spec.targetRef"}},
		"a stored conflict":   {why: "what is stored is a warning", now: with(`3`, `4`), before: good, shelf: shelf{other: other}, warnings: 1},
		"a new toleration":    {why: "API servers reject the pods", now: with(`{"name":"b"}`, tolerates), code: 400, paths: []string{"spec.subsets[1].tolerations[0].operator"}},
		"a stored toleration": {why: "what is stored is a warning", now: strings.Replace(with(`{"name":"b"}`, tolerates), `3`, `4`, 1), before: with(`{"name":"b"}`, tolerates), warnings: 1},
		"another target":      {why: "the target cannot change", now: with(`"web"`, `"db"`), before: good, code: 400, paths: []string{"spec.targetRef"}},
		"a patch":             {why: "it is tried with the target", now: patched(`{"metadata":{"labels":{"a":"b"}}}`), shelf: shelf{template: template}, reads: 1, creates: 1},
		"a patch, no target":  {why: "the target may come later", now: patched(`{"metadata":{"labels":{"a":"b"}}}`), reads: 1},
		"a patch of no pod":   {why: "it cannot be applied", now: patched(`{"spec":{"containers":7}}`), shelf: shelf{template: template}, code: 400, paths: []string{"spec.subsets[1].patch"}, reads: 1},
		"a patch that breaks": {why: "the API server rejects the pods", now: patched(`{"spec":{"containers":[{"name":"more"}]}}`), shelf: shelf{template: template}, code: 400, paths: []string{"spec.subsets[1].patch"}, reads: 1, creates: 1},
		"a stored patch":      {why: "it is not tried again", now: patched(`{"spec":{"containers":7}}`), before: patched(`{"spec":{"containers":7}}`), shelf: shelf{template: template}},
		"an API server away":  {why: "the object is admitted with a warning", now: patched(`{"metadata":{"labels":{"a":"b"}}}`), shelf: shelf{fault: errors.New("away")}, warnings: 1, reads: 1},
		"malformed":           {why: "what cannot be decoded is an error", now: `{"spec":{"subsets":7}}`, code: 400},
		"other resource":      {why: "another resource is an error", now: good, change: func(r *admission.Request) { r.Resource.Resource = "pods" }, code: 400},
		"status":              {why: "a status is the controller's", now: `{}`, change: func(r *admission.Request) { r.SubResource = "status" }},
		"leaving": {
			why: "an object that is deleted can lose its finalizers", now: `{"spec":{}}`, off: true,
			before: `{"metadata":{"finalizers":["x/y"],"deletionTimestamp":"2030-01-01T00:00:00Z"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			version := c.version
			if version == "" {
				version = "v1beta1"
			}
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "shop", Name: "s", Object: runtime.RawExtension{Raw: []byte(c.now)},
				Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: version, Resource: "workloadspreads"},
			}}
			if c.before != "" {
				req.Operation, req.OldObject.Raw = admissionv1.Update, []byte(c.before)
			}
			if c.change != nil {
				c.change(&req)
			}
			w, err := workloadspread.New(&c.shelf, &c.shelf, workloadspread.Options{Off: c.off})
			if err != nil {
				t.Fatal(err)
			}
			a := w.Validate(t.Context(), req)
			if a.Allowed != (c.code == 0) || !a.Allowed && a.Result.Code != c.code || len(a.Warnings) != c.warnings {
				t.Fatalf("%s: allowed %t, %+v, warnings %q", c.why, a.Allowed, a.Result, a.Warnings)
			}
			if c.shelf.reads != c.reads || c.shelf.creates != c.creates {
				t.Errorf("%s: %d reads, %d dry runs", c.why, c.shelf.reads, c.shelf.creates)
			}
			if paths := plaintest.Paths(a); len(c.paths) > 0 && strings.Join(paths, " ") != strings.Join(c.paths, " ") {
				t.Errorf("%s: paths %q", c.why, paths)
			}
		})
	}
	if _, err := workloadspread.New(nil, nil, workloadspread.Options{}); err == nil {
		t.Error("without a Desk")
	}
}

package workloadspread_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

// shelf has one WorkloadSpread, and one Deployment where it has a template.
type shelf struct {
	client.Client

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

const good = `{"metadata":{"name":"s"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment",` +
	`"name":"web"},"subsets":[{"name":"a","maxReplicas":3},{"name":"b"}]}}`

// TestValidate: which objects are rejected, with which code and paths. What exactly is invalid is tested in package
// validation.
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
		code        int32
		paths       []string
		warnings    int
		reads       int
		creates     int
	}{
		"good": {why: "nothing is read without a patch", now: good},
		"good in v1alpha1": {
			why: "the older version is converted", version: "v1alpha1",
			now: with(`{"name":"b"}`, `{"name":"b","requiredNodeSelectorTerm":{"matchExpressions":[{"key":"z",`+
				`"operator":"Exists"}]}}`),
		},
		"a fault of v1alpha1": {
			why: "the path is that of v1beta1", version: "v1alpha1",
			now: with(`{"name":"b"}`, `{"name":"b","requiredNodeSelectorTerm":{"matchExpressions":[{"key":"z",`+
				`"operator":"Is"}]}}`),
			code: 400, paths: []string{"spec.subsets[1].requiredNodeSelector"},
		},
		"nothing": {
			why: "all faults are reported at once", now: `{"metadata":{"name":"s"},"spec":{"subsets":[]}}`, code: 400,
			paths: []string{"spec.targetRef", "spec.subsets"},
		},
		"off": {why: "nothing would heed the object", now: good, off: true, code: 403},
		"a further kind": {
			why: "the installation allows the kind",
			now: with(`"apps/v1","kind":"Deployment"`, `"example.com/v1","kind":"Game"`),
		},
		"another kind": {
			why: "the installation does not", now: with(`"apps/v1","kind":"Deployment"`, `"example.com/v1","kind":"Toy"`),
			code: 400, paths: []string{"spec.targetRef"},
		},
		"a conflict": {
			why: "one spreads the pods of a target", now: good, shelf: shelf{other: other}, code: 400,
			paths: []string{"spec.targetRef"},
		},
		"a stored conflict": {
			why: "what is stored is a warning", now: with(`3`, `4`), before: good, shelf: shelf{other: other}, warnings: 1,
		},
		"a new toleration": {
			why: "API servers reject the pods", now: with(`{"name":"b"}`, tolerates), code: 400,
			paths: []string{"spec.subsets[1].tolerations[0].operator"},
		},
		"another target": {
			why: "the target cannot change", now: with(`"web"`, `"db"`), before: good, code: 400,
			paths: []string{"spec.targetRef"},
		},
		"a patch": {
			why: "it is tried with the target", now: patched(`{"metadata":{"labels":{"a":"b"}}}`),
			shelf: shelf{template: template}, reads: 1, creates: 1,
		},
		"a patch, no target": {why: "the target may come later", now: patched(`{"metadata":{"labels":{"a":"b"}}}`), reads: 1},
		"a patch of no pod": {
			why: "it cannot be applied", now: patched(`{"spec":{"containers":7}}`), shelf: shelf{template: template}, code: 400,
			paths: []string{"spec.subsets[1].patch"}, reads: 1,
		},
		"a patch that breaks": {
			why: "the API server rejects the pods", now: patched(`{"spec":{"containers":[{"name":"more"}]}}`),
			shelf: shelf{template: template}, code: 400, paths: []string{"spec.subsets[1].patch"}, reads: 1, creates: 1,
		},
		"a stored patch": {
			why: "it is not tried again", now: patched(`{"spec":{"containers":7}}`),
			before: patched(`{"spec":{"containers":7}}`), shelf: shelf{template: template},
		},
		"an API server away": {
			why: "the object is admitted with a warning", now: patched(`{"metadata":{"labels":{"a":"b"}}}`),
			shelf: shelf{fault: errors.New("away")}, warnings: 1, reads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := workloadspread.New(&c.shelf, &c.shelf, workloadspread.Options{Off: c.off})
			if err != nil {
				t.Fatal(err)
			}
			r := plaintest.Request(plaintest.Kind("WorkloadSpread"), cmp.Or(c.version, "v1beta1"), c.now, c.before)
			plaintest.Answers(t, c.why, plaintest.Want{
				Code: c.code, Paths: strings.Join(c.paths, " "), Warnings: c.warnings,
			}, w[workloadspread.Path](t.Context(), r))
			if c.shelf.reads != c.reads || c.shelf.creates != c.creates {
				t.Errorf("%s: %d reads, %d dry runs", c.why, c.shelf.reads, c.shelf.creates)
			}
		})
	}
	if _, err := workloadspread.New(nil, nil, workloadspread.Options{}); err == nil {
		t.Error("without an Allocator")
	}
}

package subsets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/stored"
)

func owner() *v1beta1.UnitedDeployment {
	u := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	u.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	t := &v1beta1.DeploymentTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	t.Spec.Template.Labels = t.Labels
	t.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "web:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")},
		},
	}}
	u.Spec.Template.DeploymentTemplate = t
	return u
}

func render(t *testing.T, u *v1beta1.UnitedDeployment) *unstructured.Unstructured {
	t.Helper()
	template, err := subsets.Parse(&u.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	o, err := template.Render(subsets.Wanted{
		Owner: u, Subset: &v1beta1.Subset{Name: "a"}, Name: "web-a", Revision: "web-1", Replicas: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Exactly one template is one.
func TestParse(t *testing.T) {
	u := owner()
	u.Spec.Template.CloneSetTemplate = &v1beta1.CloneSetTemplateSpec{}
	for _, template := range []*v1beta1.SubsetTemplate{{}, &u.Spec.Template} {
		if _, err := subsets.Parse(template); !errors.Is(err, subsets.ErrTemplates) {
			t.Errorf("got %v", err)
		}
	}
}

// A stored object covers what was rendered with its defaults and the fields of others, and not once something is
// missing or differs.
func TestCovers(t *testing.T) {
	u := owner()
	rendered := render(t, u)
	set := func(value any, path ...string) func(map[string]any) {
		return func(o map[string]any) {
			if err := unstructured.SetNestedField(o, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	container := func(o map[string]any) map[string]any {
		all, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "template", "spec", "containers")
		return all.([]any)[0].(map[string]any)
	}
	cases := map[string]struct {
		change func(map[string]any)
		lacks  string
	}{
		"the same":          {func(map[string]any) {}, ""},
		"defaults":          {func(o map[string]any) { container(o)["imagePullPolicy"] = "Always" }, ""},
		"a label of others": {set("x", "metadata", "labels", "team"), ""},
		"an injected container": {func(o map[string]any) {
			pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			pod["containers"] = append([]any{map[string]any{"name": "injected"}}, pod["containers"].([]any)...)
		}, ""},
		"no metadata of null": {set(map[string]any{}, "spec", "strategy"), ""},
		"other replicas":      {set(int64(3), "spec", "replicas"), "spec.replicas"},
		"another image": {
			func(o map[string]any) { container(o)["image"] = "web:2" }, "spec.template.spec.containers[web].image",
		},
		"no container": {
			func(o map[string]any) { container(o)["name"] = "other" }, "spec.template.spec.containers[web]",
		},
		"no label": {
			set("b", "metadata", "labels", "apps.kruise.io/subset-name"), "metadata.labels.apps.kruise.io/subset-name",
		},
		"a replaced structure": {func(o map[string]any) { o["spec"] = "none" }, "spec"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := rendered.DeepCopy()
			c.change(object.Object)
			packed := object.DeepCopy()
			stored.Pack(packed)
			for _, object := range []*unstructured.Unstructured{object, packed} {
				if got := strings.Join(subsets.Lacking(object, rendered), " "); got != c.lacks ||
					subsets.Covers(object, rendered) != (c.lacks == "") {
					t.Errorf("lacks %q, want %q", got, c.lacks)
				}
			}
		})
	}
	if cpu, _, _ := unstructured.NestedString(container(rendered.Object), "resources", "requests", "cpu"); cpu != "1" {
		t.Errorf("cpu %s is not as the API server stores it", cpu)
	}
	if diff := cmp.Diff(owner(), u); diff != "" {
		t.Errorf("the owner changed: %s", diff)
	}
}

// Names have the form of generated names, are stable, and differ by subset, owner and attempt.
func TestName(t *testing.T) {
	u, seen := owner(), map[string]bool{}
	for _, subset := range []string{"a", "b", strings.Repeat("z", 63)} {
		for attempt := range 3 {
			name := subsets.Name(u, subset, attempt)
			if name != subsets.Name(u, subset, attempt) || seen[name] || len(name) > 63 ||
				!strings.HasPrefix(name, "web-"+subset[:1]) {
				t.Errorf("name %s", name)
			}
			seen[name] = true
		}
	}
	if got := subsets.Name(u, "Not.A-Name_", 0); !strings.HasPrefix(got, "web-") || len(got) != len("web-")+5 {
		t.Errorf("name %s", got)
	}
}

// Whatever is stored, it can be read.
func TestObserveAnything(t *testing.T) {
	for _, kind := range subsets.Kinds() {
		for _, value := range []any{nil, "x", int64(-5), int64(1) << 40, 1.5, []any{}, map[string]any{"replicas": "many"}} {
			o := &unstructured.Unstructured{Object: map[string]any{
				"spec": value, "status": map[string]any{"replicas": value, "observedGeneration": value},
			}}
			packed := o.DeepCopy()
			stored.Pack(packed)
			c, same := subsets.Observe(kind, o), subsets.Observe(kind, packed)
			if same.Object = o; !reflect.DeepEqual(c, same) {
				t.Errorf("%s with %v: %+v, packed %+v", kind.Kind, value, c, same)
			}
			if c.Replicas < 0 || c.Pods < 0 || c.Owns(&corev1.Pod{}) || kind.Kind != "StatefulSet" && c.Stuck() {
				t.Errorf("%s with %v: %+v", kind.Kind, value, c)
			}
		}
	}
}

// The data of a revision mean the same whatever their encoding.
func TestSameData(t *testing.T) {
	u := owner()
	data, err := subsets.Encode(&u.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(data), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1)
	if older == string(data) || !subsets.SameData([]byte(older), data) {
		t.Errorf("%s and %s differ", older, data)
	}
	for _, other := range []string{strings.Replace(string(data), "web:1", "web:2", 1), "", "{", fmt.Sprint(nil)} {
		if subsets.SameData([]byte(other), data) {
			t.Errorf("%s is the same", other)
		}
	}
}

// A revision that OpenKruise up to 1.8 has stored has the shape of v1alpha1. It holds the template that the object has
// in v1beta1.
func TestSameDataOfOlderShape(t *testing.T) {
	const pod = `"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},` +
		`"spec":{"containers":[{"name":"web","image":"web:1","resources":{}}]}}`
	cloneSet := func(scale, update string) string {
		return `{"cloneSetTemplate":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{` + pod +
			`,"scaleStrategy":` + scale + `,"updateStrategy":` + update + `}}`
	}
	statefulSet := func(more string) string {
		return `{"advancedStatefulSetTemplate":{"metadata":{"labels":{"app":"web"}},"spec":{` + pod +
			`,"serviceName":"web",` + more + `}}`
	}
	cases := map[string]struct{ is, other string }{
		"nothing said": {cloneSet(`{}`, `{}`), cloneSet(`{}`, `{"maxUnavailable":1}`)},
		"recreated": {
			cloneSet(`{}`, `{"type":"ReCreate","maxUnavailable":"20%"}`),
			cloneSet(`{}`, `{"type":"ReCreate","maxUnavailable":"30%"}`),
		},
		"in place": {
			cloneSet(`{}`, `{"type":"InPlaceIfPossible"}`), cloneSet(`{}`, `{"type":"InPlaceOnly"}`),
		},
		"a setting alone": {
			cloneSet(`{"maxUnavailable":1}`, `{"maxUnavailable":1}`), cloneSet(`{}`, `{"maxUnavailable":1}`),
		},
		"claims that are not kept": {
			cloneSet(`{"disablePVCReuse":true}`, `{"type":"ReCreate"}`), cloneSet(`{}`, `{"type":"ReCreate"}`),
		},
		"ordinals as numbers": {statefulSet(`"reserveOrdinals":[1,2]`), statefulSet(`"reserveOrdinals":[1]`)},
		"a strategy of StatefulSet": {
			statefulSet(`"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible","maxUnavailable":2}}`),
			statefulSet(`"updateStrategy":{}`),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stored := func(template string) []byte {
				return []byte(`{"spec":{"template":` + template + `,"$patch":"replace"}}}`)
			}
			old, hub := v1alpha1.UnitedDeployment{}, v1beta1.UnitedDeployment{}
			if err := json.Unmarshal([]byte(`{"spec":{"template":`+c.is+`}}}`), &old); err != nil {
				t.Fatal(err)
			}
			if err := old.ConvertTo(&hub); err != nil {
				t.Fatal(err)
			}
			data, err := subsets.Encode(&hub.Spec.Template)
			if err != nil {
				t.Fatal(err)
			}
			if !subsets.SameData(stored(c.is), data) || !subsets.SameData(data, stored(c.is)) {
				t.Errorf("%s and %s differ", stored(c.is), data)
			}
			if subsets.SameData(stored(c.other), data) {
				t.Errorf("%s and %s are the same", stored(c.other), data)
			}
		})
	}
}

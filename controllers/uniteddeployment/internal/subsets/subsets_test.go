package subsets_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
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

// Names have the form of generated names, are stable, and differ by subset.
func TestName(t *testing.T) {
	u, seen := owner(), map[string]bool{}
	for _, subset := range []string{"a", "b", strings.Repeat("z", 63)} {
		name := subsets.Name(u, subset)
		if name != subsets.Name(u, subset) || seen[name] || len(name) > 63 || !strings.HasPrefix(name, "web-"+subset[:1]) {
			t.Errorf("name %s", name)
		}
		seen[name] = true
	}
	if got := subsets.Name(u, "Not.A-Name_"); !strings.HasPrefix(got, "web-") || len(got) != len("web-")+5 {
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

// A revision has the fields that the types lack at their paths, and a change of one is a change.
func TestSameDataOfUnknownFields(t *testing.T) {
	encode := func(value string) []byte {
		u := owner()
		template := map[string]any{}
		data, err := json.Marshal(&u.Spec.Template)
		if err == nil {
			err = json.Unmarshal(data, &template)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range template {
			fields, _ := kind.(map[string]any)
			if err := unstructured.SetNestedField(fields, value, "spec", "template", "spec", "newer"); err != nil {
				t.Fatal(err)
			}
		}
		if err := revision.KeepUnknownFields(&u.Spec.Template, template); err != nil {
			t.Fatal(err)
		}
		if data, err = subsets.Encode(&u.Spec.Template); err != nil {
			t.Fatal(err)
		}
		return data
	}
	x := encode("x")
	if !strings.Contains(string(x), `"newer":"x"`) || strings.Contains(string(x), revision.UnknownFieldsKey) {
		t.Errorf("stored as %s", x)
	}
	if !subsets.SameData(append([]byte(" "), x...), x) || subsets.SameData(x, encode("y")) {
		t.Error("the field does not count")
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

package revision_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/revision"
)

// newer is a template with a field of a newer Kubernetes at each kind of place.
const newer = `{
	"metadata":{"labels":{"app":"web"},"newMeta":"m"},
	"spec":{
		"newGroup":{"name":"gang"},"newZero":0,"newNull":null,
		"securityContext":{"newUser":"u"},
		"containers":[
			{"name":"app","image":"web:1","newFlag":true,"env":[{"name":"A","value":"1","newEnv":"e"}],
			 "ports":[{"containerPort":80},{"containerPort":443,"newPort":"p"}],
			 "resources":{"limits":{"cpu":"1"},"newLimits":{"cpu":"2"}}},
			{"name":"side","image":"side:1","resources":{},"livenessProbe":{"newProbe":{"port":9007199254740993}}}
		],
		"topologySpreadConstraints":[
			{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"},
			{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","newSkew":2}],
		"tolerations":[{"key":"a"},{"key":"b","newTime":"1s"}],
		"volumes":[{"name":"data","newVolume":{"size":"1Gi"}}]
	}
}`

func templateOf(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	template, err := revision.Decode([]byte(`{"spec":{"template":` + text + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func valuesOf(t *testing.T, text string) (values map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		t.Fatal(err)
	}
	return values
}

func textOf(t *testing.T, object any) string {
	t.Helper()
	fields, err := revision.WithUnknownFields(object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A template that is decoded and encoded is as it was, and so is a pod from it.
func TestUnknownFieldsStay(t *testing.T) {
	template := templateOf(t, newer)
	if !revision.HasUnknownFields(template) {
		t.Fatal("the template keeps none")
	}
	want := valuesOf(t, newer)
	spec, _ := want["spec"].(map[string]any)
	delete(spec, "newNull") // as API servers do
	if diff := cmp.Diff(want, valuesOf(t, textOf(t, template))); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	data, err := revision.Encode(template)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), revision.UnknownFieldsKey) {
		t.Errorf("stored in the annotation: %s", data)
	}
	var stored struct {
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	whole := valuesOf(t, string(stored.Spec.Template))
	delete(whole, "$patch")
	delete(whole["metadata"].(map[string]any), "creationTimestamp")
	if diff := cmp.Diff(want, whole, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b json.Number) bool {
		x, errX := a.Float64()
		y, errY := b.Float64()
		return x == y && errX == nil && errY == nil
	})); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	again, err := revision.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(template, again); diff != "" {
		t.Errorf("stored and read (-want +got):\n%s", diff)
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	got := valuesOf(t, textOf(t, pod))
	delete(got, "status")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

// What is added to a pod or taken from it on its way moves no field to another element.
func TestUnknownFieldsFollowNames(t *testing.T) {
	template := templateOf(t, newer)
	template.Spec.Containers = append([]corev1.Container{{Name: "first"}}, template.Spec.Containers...)
	template.Spec.Volumes = []corev1.Volume{{Name: "other"}}
	got := valuesOf(t, textOf(t, template))
	spec, _ := got["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for i, want := range []bool{false, true, false} {
		if container, _ := containers[i].(map[string]any); (container["newFlag"] != nil) != want {
			t.Errorf("container %d: %v", i, container)
		}
	}
	if diff := cmp.Diff([]any{map[string]any{"name": "other"}}, spec["volumes"]); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
}

func TestSameUnknownFields(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"both have it":      {`{"spec":{"x":{"a":1,"b":2}}}`, `{"spec":{"x":{"b":2,"a":1}}}`, true},
		"one has it":        {`{"spec":{"x":1}}`, `{"spec":{}}`, false},
		"another value":     {`{"spec":{"x":1}}`, `{"spec":{"x":2}}`, false},
		"null is as none":   {`{"spec":{"x":null}}`, `{"spec":{}}`, true},
		"of another letter": {`{"spec":{"HostNetwork":true}}`, `{"spec":{"hostNetwork":true}}`, false},
	} {
		if got := revision.Same(templateOf(t, c.a), templateOf(t, c.b)); got != c.want {
			t.Errorf("%s: same is %v", name, got)
		}
		data := func(text string) []byte { return []byte(`{"spec":{"template":` + text + `}}`) }
		if got := revision.SameData(data(c.a), data(c.b)); got != c.want {
			t.Errorf("%s: same data is %v", name, got)
		}
	}
}

// A user who writes the annotation changes nothing.
func TestUnknownFieldsKeyOfUsers(t *testing.T) {
	for _, value := range []string{`{\"spec\":{\"nodeName\":\"n\",\"x\":1}}`, "{", ""} {
		template := templateOf(t, `{"metadata":{"annotations":{"`+revision.UnknownFieldsKey+`":"`+value+`","a":"b"}},"spec":{}}`)
		if _, ok := template.Annotations[revision.UnknownFieldsKey]; ok || template.Annotations["a"] != "b" {
			t.Errorf("%q: %v", value, template.Annotations)
		}
	}
}

// Templates are found wherever an object has them.
func TestKeepUnknownFields(t *testing.T) {
	const text = `{"metadata":{"name":"x"},"spec":{"suspend":true,"jobTemplate":{"spec":{"template":{"spec":{"x":1}}}}}}`
	var job batchv1.CronJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	var values any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	if revision.HasUnknownFields(&job) {
		t.Error("unknown fields before they are kept")
	}
	if err := revision.KeepUnknownFields(&job, values); err != nil {
		t.Fatal(err)
	}
	if !revision.HasUnknownFields(&job) || !strings.Contains(textOf(t, &job), `"template":{"metadata":{},"spec":{"containers":null,"x":1}}`) {
		t.Errorf("got %s", textOf(t, &job))
	}
}

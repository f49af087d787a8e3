package revision_test

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/revision"
)

// layouts are those of resources whose templates are at other places than spec.template.
func layouts() map[string]*revision.Layout {
	return map[string]*revision.Layout{
		"list": {
			Templates: []revision.Place{{Path: "spec.roles[name].template"}},
			Ignored:   []string{"spec.roles[name].replicas", "spec.paused"},
		},
		"paths": {Templates: []revision.Place{
			{Path: "spec.leaderWorkerTemplate.leaderTemplate", Role: "leader"},
			{Path: "spec.leaderWorkerTemplate.workerTemplate", Role: "worker"},
		}},
		"deep list": {Templates: []revision.Place{{Path: "spec.groups.roles[id].pods.template"}}},
		"deep map":  {Templates: []revision.Place{{Path: "spec.roles[].podTemplate"}}},
		"map":       nil,
	}
}

// The laws of Encode, Decode and Same hold for every layout.
func TestLayouts(t *testing.T) {
	for name, layout := range layouts() {
		t.Run(name, func(t *testing.T) {
			encode := func(templates map[string]*corev1.PodTemplateSpec) []byte {
				data, err := layout.Encode(templates)
				if err != nil {
					t.Fatal(err)
				}
				return data
			}
			both := roles(t, "a:1", "b:1")
			data := encode(both)
			decoded, err := layout.Decode(data)
			if err != nil || !revision.SameRoles(decoded, both) || string(encode(decoded)) != string(data) {
				t.Fatalf("%v after %s, %v", decoded, data, err)
			}
			defaulted := maps.Clone(both)
			defaulted["worker"] = both["worker"].DeepCopy()
			defaulted["worker"].Spec.RestartPolicy = corev1.RestartPolicyAlways
			for why, c := range map[string]struct {
				other map[string]*corev1.PodTemplateSpec
				same  bool
			}{
				"defaults":     {defaulted, true},
				"another role": {roles(t, "a:1", "b:2"), false},
				"fewer":        {roles(t, "a:1", ""), false},
				"swapped":      {roles(t, "b:1", "a:1"), false},
			} {
				other := encode(c.other)
				if layout.Same(data, other) != c.same || layout.Same(other, data) != c.same {
					t.Errorf("%s: not %t: %s", why, c.same, other)
				}
				r := revision.Resolve(revision.Input{
					Owner: "g", Data: other, Same: layout.Same, Have: []*appsv1.ControllerRevision{stored("g-1", 1, data)},
				})
				if (r.Verdict == revision.Use) != c.same {
					t.Errorf("%s: %s", why, r.Verdict)
				}
			}
		})
	}
}

// Data that an operator has stored with more than templates stays readable, and all of it counts that is not ignored.
func TestLayoutOfStoredData(t *testing.T) {
	const stored = `{"spec":{"paused":true,"roles":[
		{"name":"prefill","replicas":2,"template":{"metadata":{},"spec":{"containers":[{"name":"c","image":"a:1"}]}}},
		{"name":"router","replicas":1,"image":"r:1"},
		{"name":"decode","template":{"spec":{"containers":[{"name":"c","image":"b:1"}]}}}]}}`
	layout := layouts()["list"]
	templates, err := layout.Decode([]byte(stored))
	if err != nil || len(templates) != 2 || templates["decode"].Spec.Containers[0].Image != "b:1" {
		t.Fatalf("%v, %v", templates, err)
	}
	for why, c := range map[string]struct {
		old, now string
		same     bool
	}{
		"an ignored field of an element": {`"replicas":2`, `"replicas":7`, true},
		"an ignored field":               {`"paused":true,`, ``, true},
		"another field of an element":    {`"image":"r:1"`, `"image":"r:2"`, false},
		"a template":                     {`"image":"b:1"`, `"image":"b:2"`, false},
		"a role without a template":      {`"name":"router"`, `"name":"routers"`, false},
		"a default": {
			`"name":"c","image":"b:1"`, `"name":"c","image":"b:1","terminationMessagePath":"/dev/termination-log"`, true,
		},
		"one role less": {`{"name":"router","replicas":1,"image":"r:1"},`, ``, false},
	} {
		other := strings.Replace(stored, c.old, c.now, 1)
		if other == stored || layout.Same([]byte(stored), []byte(other)) != c.same {
			t.Errorf("%s: not %t", why, c.same)
		}
	}
	lines := strings.Split(stored, "\n")
	if !layout.Same([]byte(stored), []byte(lines[0]+lines[2]+lines[1]+lines[3])) {
		t.Error("the order of a list counts")
	}
}

func TestLayoutFails(t *testing.T) {
	for why, path := range map[string]string{
		"nothing": "", "an empty field": "spec..template", "two lists": "spec.a[name].b[name].template",
		"an open bracket": "spec.roles[name.template", "a bracket alone": "spec.[name].template",
		"a list of templates": "spec.templates[name]", "a text after the bracket": "spec.roles[name]s.template",
	} {
		layout := &revision.Layout{Templates: []revision.Place{{Path: path}}}
		_, encoded := layout.Encode(roles(t, "a:1", ""))
		_, decoded := layout.Decode([]byte(`{}`))
		if encoded == nil || decoded == nil {
			t.Errorf("%s: encoded %v, decoded %v", why, encoded, decoded)
		}
	}
	if _, err := (&revision.Layout{}).Encode(roles(t, "a:1", "")); err == nil {
		t.Error("a layout without a place has no error")
	}
	if data, err := layouts()["paths"].Encode(map[string]*corev1.PodTemplateSpec{"router": {}}); err == nil {
		t.Errorf("a role without a place: %s", data)
	}
	for why, data := range map[string]string{
		"no name":       `{"spec":{"roles":[{"template":{}}]}}`,
		"a number":      `{"spec":{"roles":[{"name":7,"template":{}}]}}`,
		"a name twice":  `{"spec":{"roles":[{"name":"a","template":{}},{"name":"a","template":{}}]}}`,
		"a map":         `{"spec":{"roles":{"a":{"template":{}}}}}`,
		"texts":         `{"spec":{"roles":["a"]}}`,
		"no templates":  `{"spec":{"roles":[{"name":"a"}]}}`,
		"no template":   `{"spec":{"roles":[{"name":"a","template":7}]}}`,
		"nothing there": `{"spec":null}`,
	} {
		templates, err := layouts()["list"].Decode([]byte(data))
		if err == nil {
			t.Errorf("%s: %v, %v", why, templates, err)
		}
	}
}

func FuzzLayout(f *testing.F) {
	for _, path := range []string{"spec.template", "spec.roles[name].template", "spec.a[].b", "spec.a[]", "a..b[c]]"} {
		f.Add(path, `{"spec":{"template":{},"roles":[{"name":"a","template":{"spec":{}}}],"a":{"x":{"b":{}}}}}`)
		f.Add(path, `{"spec":{"roles":[null,7,{"name":null}],"a":[{"b":null}],"template":[]}}`)
	}
	f.Fuzz(func(t *testing.T, path, data string) {
		layout := &revision.Layout{Templates: []revision.Place{{Path: path}}, Ignored: []string{path}}
		templates, err := layout.Decode([]byte(data))
		if layout.Same([]byte(data), []byte(data+" ")) != (err == nil) {
			t.Errorf("%q: data is not the same as itself, %v", path, err)
		}
		if err != nil {
			return
		}
		again, err := layout.Encode(templates)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := layout.Decode(again); err != nil || !revision.SameRoles(templates, back) {
			t.Errorf("%q: %s has other templates, %v", path, again, err)
		}
	})
}

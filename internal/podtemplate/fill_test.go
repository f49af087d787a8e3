package podtemplate_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

func TestFill(t *testing.T) {
	cases := map[string]struct{ why, have, want, patch, filled string }{
		"missing":        {"it is added", `{}`, `{"a":{"b":1}}`, `[{"op":"add","path":"/x/a","value":{"b":1}}]`, `{"a":{"b":1}}`},
		"null":           {"as good as missing", `{"a":null}`, `{"a":1}`, `[{"op":"add","path":"/x/a","value":1}]`, `{"a":1}`},
		"null default":   {"as good as none", `{}`, `{"a":null}`, `null`, `{}`},
		"below":          {"only what is missing is sent", `{"a":{"b":1}}`, `{"a":{"b":2,"c":3}}`, `[{"op":"add","path":"/x/a/c","value":3}]`, `{"a":{"b":1,"c":3}}`},
		"empty text":     {"the API server takes it as left out", `{"a":""}`, `{"a":"b"}`, `[{"op":"replace","path":"/x/a","value":"b"}]`, `{"a":"b"}`},
		"zero":           {"the same", `{"a":0}`, `{"a":1}`, `[{"op":"replace","path":"/x/a","value":1}]`, `{"a":1}`},
		"notation":       {"a quantity is as the user wrote it", `{"a":0,"b":0.5,"c":"1024Mi"}`, `{"a":"0","b":"500m","c":"1Gi"}`, `null`, `{"a":0,"b":0.5,"c":"1024Mi"}`},
		"false":          {"it is a value", `{"a":false}`, `{"a":true}`, `null`, `{"a":false}`},
		"list":           {"element by element", `{"a":[{"b":1},{}]}`, `{"a":[{"b":1},{"b":2}]}`, `[{"op":"add","path":"/x/a/1/b","value":2}]`, `{"a":[{"b":1},{"b":2}]}`},
		"another length": {"nobody knows what belongs together", `{"a":[{}]}`, `{"a":[{"b":1},{"b":2}]}`, `null`, `{"a":[{}]}`},
		"another type":   {"what the user wrote stays", `{"a":7,"b":{}}`, `{"a":{"b":1},"b":[1]}`, `null`, `{"a":7,"b":{}}`},
		"odd keys":       {"pointers have their own signs", `{}`, `{"a/b~c":1}`, `[{"op":"add","path":"/x/a~1b~0c","value":1}]`, `{"a/b~c":1}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			have := decode(t, c.have)
			patch, err := json.Marshal(podtemplate.Fill("/x", have, decode(t, c.want)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{c.patch, decode(t, c.filled)}, []any{string(patch), have}); diff != "" {
				t.Errorf("%s: patch and result (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestRefill(t *testing.T) {
	const all = `"dnsPolicy":"x","restartPolicy":"x","schedulerName":"x","securityContext":{},"terminationGracePeriodSeconds":1`
	cases := map[string]struct{ why, have, want, stored, patch string }{
		"never defaulted": {"now it is", `{"spec":{}}`, `{"spec":{"a":1}}`, `{"spec":{}}`, `[{"op":"add","path":"/spec/a","value":1}]`},
		"nothing stored":  {"there is nothing to go by", `{"spec":{}}`, `{"spec":{"a":1}}`, `null`, `[{"op":"add","path":"/spec/a","value":1}]`},
		"defaulted": {
			"what it had is filled in again, what it lacked is not", `{"spec":{}}`, `{"spec":{"dnsPolicy":"x","new":1}}`, `{"spec":{` + all + `}}`,
			`[{"op":"add","path":"/spec/dnsPolicy","value":"x"}]`,
		},
		"containers": {
			"they go by their names", `{"spec":{"containers":[{"name":"b"},{"name":"a"},{"name":"c"}]}}`,
			`{"spec":{"containers":[{"name":"b","new":1,"old":1},{"name":"a","new":1,"old":1},{"name":"c","new":1,"old":1}]}}`,
			`{"spec":{` + all + `,"containers":[{"name":"a","old":1},{"name":"b"}]}}`,
			`[{"op":"add","path":"/spec/containers/1/old","value":1},{"op":"add","path":"/spec/containers/2/new","value":1},{"op":"add","path":"/spec/containers/2/old","value":1}]`,
		},
		"ports": {
			"without names they go by their places", `{"spec":{"ports":[{},{}]}}`, `{"spec":{"ports":[{"protocol":"TCP"},{"protocol":"TCP"}]}}`,
			`{"spec":{` + all + `,"ports":[{}]}}`, `[{"op":"add","path":"/spec/ports/1/protocol","value":"TCP"}]`,
		},
		"a new part": {
			"it has never been defaulted", `{"spec":{"probe":{"port":1}}}`, `{"spec":{"probe":{"port":1,"scheme":"HTTP"}}}`, `{"spec":{` + all + `}}`,
			`[{"op":"add","path":"/spec/probe/scheme","value":"HTTP"}]`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			patch, err := json.Marshal(podtemplate.Refill("", decode(t, c.have), decode(t, c.want), decode(t, c.stored)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.patch, string(patch)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// FuzzFill: nothing that was there goes, and a second time there is nothing to fill.
func FuzzFill(f *testing.F) {
	f.Add(`{"a":[{"b":""},null],"c":0}`, `{"a":[{"b":"x","d":{}},{"e":1}],"c":7}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var have, want map[string]any
		if !stdjson.Valid([]byte(a)) || json.Unmarshal([]byte(a), &have) != nil || json.Unmarshal([]byte(b), &want) != nil || have == nil {
			t.Skip()
		}
		before := runtime.DeepCopyJSON(have)
		podtemplate.Fill("", have, want)
		for key, value := range before {
			if _, ok := have[key]; !ok {
				t.Errorf("%s is gone, which was %v", key, value)
			}
		}
		if again := podtemplate.Fill("", have, want); len(again) > 0 {
			t.Errorf("left for a second time: %v", again)
		}
	})
}

func TestPrepare(t *testing.T) {
	both := podtemplate.Defaults{PullAlways: true, HostPorts: true}
	cases := map[string]struct {
		why, template, want string
		defaults            podtemplate.Defaults
	}{
		"nothing wanted": {"both are options", `{"spec":{"hostNetwork":true,"containers":[{"ports":[{"containerPort":1}]}]}}`, `{"spec":{"hostNetwork":true,"containers":[{"ports":[{"containerPort":1}]}]}}`, podtemplate.Defaults{}},
		"pull policy":    {"of containers that have none", `{"spec":{"initContainers":[{}],"containers":[{},{"imagePullPolicy":"Never"},{"imagePullPolicy":""}]}}`, `{"spec":{"initContainers":[{}],"containers":[{"imagePullPolicy":"Always"},{"imagePullPolicy":"Never"},{"imagePullPolicy":"Always"}]}}`, both},
		"host ports":     {"in the host's network", `{"spec":{"hostNetwork":true,"initContainers":[{"ports":[{"containerPort":1}]}]}}`, `{"spec":{"hostNetwork":true,"initContainers":[{"ports":[{"containerPort":1,"hostPort":1}]}]}}`, both},
		"no host ports":  {"elsewhere ports are the pod's own", `{"spec":{"initContainers":[{"ports":[{"containerPort":1}]}]}}`, `{"spec":{"initContainers":[{"ports":[{"containerPort":1}]}]}}`, both},
		"odd":            {"the API server refuses it", `{"spec":{"hostNetwork":true,"containers":[null,7,{"imagePullPolicy":7,"ports":[7,{}]}]}}`, `{"spec":{"hostNetwork":true,"containers":[null,7,{"imagePullPolicy":7,"ports":[7,{}]}]}}`, both},
		"odder":          {"the API server refuses it", `{"spec":[]}`, `{"spec":[]}`, both},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template := decode(t, c.template)
			got := podtemplate.Prepare(template, c.defaults)
			if diff := cmp.Diff([]any{decode(t, c.template), decode(t, c.want)}, []any{template, got}); diff != "" {
				t.Errorf("%s: input and result (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

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
		"missing": {
			why:    "it is added",
			have:   `{}`,
			want:   `{"a":{"b":1}}`,
			patch:  `[{"op":"add","path":"/x/a","value":{"b":1}}]`,
			filled: `{"a":{"b":1}}`,
		},
		"null": {
			why:    "as good as missing",
			have:   `{"a":null}`,
			want:   `{"a":1}`,
			patch:  `[{"op":"add","path":"/x/a","value":1}]`,
			filled: `{"a":1}`,
		},
		"null default": {"as good as none", `{}`, `{"a":null}`, `null`, `{}`},
		"below": {
			why:    "only what is missing is sent",
			have:   `{"a":{"b":1}}`,
			want:   `{"a":{"b":2,"c":3}}`,
			patch:  `[{"op":"add","path":"/x/a/c","value":3}]`,
			filled: `{"a":{"b":1,"c":3}}`,
		},
		"empty text": {
			why:    "the API server takes it as left out",
			have:   `{"a":""}`,
			want:   `{"a":"b"}`,
			patch:  `[{"op":"replace","path":"/x/a","value":"b"}]`,
			filled: `{"a":"b"}`,
		},
		"zero": {"the same", `{"a":0}`, `{"a":1}`, `[{"op":"replace","path":"/x/a","value":1}]`, `{"a":1}`},
		"notation": {
			why:    "a quantity is as the user wrote it",
			have:   `{"a":0,"b":0.5,"c":"1024Mi"}`,
			want:   `{"a":"0","b":"500m","c":"1Gi"}`,
			patch:  `null`,
			filled: `{"a":0,"b":0.5,"c":"1024Mi"}`,
		},
		"false": {"it is a value", `{"a":false}`, `{"a":true}`, `null`, `{"a":false}`},
		"list": {
			why:    "element by element",
			have:   `{"a":[{"b":1},{}]}`,
			want:   `{"a":[{"b":1},{"b":2}]}`,
			patch:  `[{"op":"add","path":"/x/a/1/b","value":2}]`,
			filled: `{"a":[{"b":1},{"b":2}]}`,
		},
		"another length": {
			why:    "nobody knows what belongs together",
			have:   `{"a":[{}]}`,
			want:   `{"a":[{"b":1},{"b":2}]}`,
			patch:  `null`,
			filled: `{"a":[{}]}`,
		},
		"another type": {"what the user wrote stays", `{"a":7,"b":{}}`, `{"a":{"b":1},"b":[1]}`, `null`, `{"a":7,"b":{}}`},
		"odd keys": {
			why:    "pointers have their own signs",
			have:   `{}`,
			want:   `{"a/b~c":1}`,
			patch:  `[{"op":"add","path":"/x/a~1b~0c","value":1}]`,
			filled: `{"a/b~c":1}`,
		},
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
		"never defaulted": {
			why:    "now it is",
			have:   `{"spec":{}}`,
			want:   `{"spec":{"a":1}}`,
			stored: `{"spec":{}}`,
			patch:  `[{"op":"add","path":"/spec/a","value":1}]`,
		},
		"nothing stored": {
			why:    "there is nothing to go by",
			have:   `{"spec":{}}`,
			want:   `{"spec":{"a":1}}`,
			stored: `null`,
			patch:  `[{"op":"add","path":"/spec/a","value":1}]`,
		},
		"defaulted": {
			why:    "what it had is filled in again, what it lacked is not",
			have:   `{"spec":{}}`,
			want:   `{"spec":{"dnsPolicy":"x","new":1}}`,
			stored: `{"spec":{` + all + `}}`,
			patch:  `[{"op":"add","path":"/spec/dnsPolicy","value":"x"}]`,
		},
		"containers": {
			why:    "they go by their names",
			have:   `{"spec":{"containers":[{"name":"b"},{"name":"a"},{"name":"c"}]}}`,
			want:   `{"spec":{"containers":[{"name":"b","new":1,"old":1},{"name":"a","new":1,"old":1},{"name":"c","new":1,"old":1}]}}`,
			stored: `{"spec":{` + all + `,"containers":[{"name":"a","old":1},{"name":"b"}]}}`,
			patch:  `[{"op":"add","path":"/spec/containers/1/old","value":1},{"op":"add","path":"/spec/containers/2/new","value":1},{"op":"add","path":"/spec/containers/2/old","value":1}]`,
		},
		"ports": {
			why:    "without names they go by their places",
			have:   `{"spec":{"ports":[{},{}]}}`,
			want:   `{"spec":{"ports":[{"protocol":"TCP"},{"protocol":"TCP"}]}}`,
			stored: `{"spec":{` + all + `,"ports":[{}]}}`,
			patch:  `[{"op":"add","path":"/spec/ports/1/protocol","value":"TCP"}]`,
		},
		"a new part": {
			why:    "it has never been defaulted",
			have:   `{"spec":{"probe":{"port":1}}}`,
			want:   `{"spec":{"probe":{"port":1,"scheme":"HTTP"}}}`,
			stored: `{"spec":{` + all + `}}`,
			patch:  `[{"op":"add","path":"/spec/probe/scheme","value":"HTTP"}]`,
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
		if !stdjson.Valid([]byte(a)) || json.Unmarshal([]byte(a), &have) != nil || json.Unmarshal([]byte(b), &want) != nil ||
			have == nil {
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
		"nothing wanted": {
			why:      "both are options",
			template: `{"spec":{"hostNetwork":true,"containers":[{"ports":[{"containerPort":1}]}]}}`,
			want:     `{"spec":{"hostNetwork":true,"containers":[{"ports":[{"containerPort":1}]}]}}`,
			defaults: podtemplate.Defaults{},
		},
		"pull policy": {
			why:      "of containers that have none",
			template: `{"spec":{"initContainers":[{}],"containers":[{},{"imagePullPolicy":"Never"},{"imagePullPolicy":""}]}}`,
			want:     `{"spec":{"initContainers":[{}],"containers":[{"imagePullPolicy":"Always"},{"imagePullPolicy":"Never"},{"imagePullPolicy":"Always"}]}}`,
			defaults: both,
		},
		"host ports": {
			why:      "in the host's network",
			template: `{"spec":{"hostNetwork":true,"initContainers":[{"ports":[{"containerPort":1}]}]}}`,
			want:     `{"spec":{"hostNetwork":true,"initContainers":[{"ports":[{"containerPort":1,"hostPort":1}]}]}}`,
			defaults: both,
		},
		"no host ports": {
			why:      "elsewhere ports are the pod's own",
			template: `{"spec":{"initContainers":[{"ports":[{"containerPort":1}]}]}}`,
			want:     `{"spec":{"initContainers":[{"ports":[{"containerPort":1}]}]}}`,
			defaults: both,
		},
		"odd": {
			why:      "the API server refuses it",
			template: `{"spec":{"hostNetwork":true,"containers":[null,7,{"imagePullPolicy":7,"ports":[7,{}]}]}}`,
			want:     `{"spec":{"hostNetwork":true,"containers":[null,7,{"imagePullPolicy":7,"ports":[7,{}]}]}}`,
			defaults: both,
		},
		"odder": {"the API server refuses it", `{"spec":[]}`, `{"spec":[]}`, both},
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

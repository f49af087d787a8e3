package conversion

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpaque(t *testing.T) {
	paths := []string{"a.b", "c"}
	cases := map[string]struct{ why, src, rest, dst, want string }{
		"both": {
			why:  "values move as they are",
			src:  `{"a":{"b":1.50,"x":1},"c":[1]}`,
			rest: `{"a":{"x":1}}`,
			dst:  `{"a":{"x":2}}`,
			want: `{"a":{"b":1.50,"x":2},"c":[1]}`,
		},
		"neither": {"nothing comes from nothing", `{"a":{},"d":1}`, `{"a":{},"d":1}`, `{"e":1}`, `{"e":1}`},
		"overwrites": {
			why:  "what the type made of it is replaced",
			src:  `{"a":{"b":{}}}`,
			rest: `{"a":{}}`,
			dst:  `{"a":{"b":{"containers":null}}}`,
			want: `{"a":{"b":{}}}`,
		},
		"no parent":  {"a value without the object around it is dropped", `{"a":{"b":1}}`, `{"a":{}}`, `{}`, `{}`},
		"null":       {"null has no fields", `{"a":null,"c":null}`, `{"a":null}`, `{"a":null}`, `{"a":null,"c":null}`},
		"null there": {"nor takes any", `{"a":{"b":1}}`, `{"a":{}}`, `{"a":null}`, `{"a":null}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rest, values, err := takeOpaque(json.RawMessage(c.src), paths)
			if err != nil {
				t.Fatal(err)
			}
			got, err := putOpaque(json.RawMessage(c.dst), paths, values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.rest, c.want}, []string{string(rest), string(got)}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	for _, broken := range []string{``, `7`, `{"a":7}`} {
		if _, _, err := takeOpaque(json.RawMessage(broken), paths); err == nil {
			t.Errorf("%q has opaque values", broken)
		}
	}
}

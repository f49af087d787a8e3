package write_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server

	"github.com/kruisekit/kruisekit/write"
)

func TestEncode(t *testing.T) {
	var nothing []string
	cases := map[string]struct {
		patch   write.Op
		encoded string
		before  string
		after   string // empty where it does not apply
	}{
		"add: a key comes": {write.Add("/a", 1), `{"op":"add","path":"/a","value":1}`, `{}`, `{"a":1}`},
		"a nil slice: it is null, not left out": {
			patch:   write.Add("/a", nothing),
			encoded: `{"op":"add","path":"/a","value":null}`,
			before:  `{}`,
			after:   `{"a":null}`,
		},
		"zero: it is a value": {
			patch:   write.Replace("/a", 0),
			encoded: `{"op":"replace","path":"/a","value":0}`,
			before:  `{"a":1}`,
			after:   `{"a":0}`,
		},
		"no element: there is none to be another": {
			patch:   write.Replace("/a/1", 1),
			encoded: `{"op":"replace","path":"/a/1","value":1}`,
			before:  `{"a":[2]}`,
			after:   ``,
		},
		"remove: its value is not looked at": {
			patch:   write.Remove("/a"),
			encoded: `{"op":"remove","path":"/a"}`,
			before:  `{"a":1,"b":2}`,
			after:   `{"b":2}`,
		},
		"test: it is so": {write.Test("/a", 1), `{"op":"test","path":"/a","value":1}`, `{"a":1}`, `{"a":1}`},
		"nothing: null is what is not there": {
			patch:   write.Test("/a", nil),
			encoded: `{"op":"test","path":"/a","value":null}`,
			before:  `{}`,
			after:   `{}`,
		},
		"something: null is no value that is there": {
			patch:   write.Test("/a", nil),
			encoded: `{"op":"test","path":"/a","value":null}`,
			before:  `{"a":0}`,
			after:   ``,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := write.Encode([]write.Op{c.patch})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("["+c.encoded+"]", string(data)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			decoded, err := evanphx.DecodePatch(data)
			if err != nil {
				t.Fatal(err)
			}
			after, err := decoded.Apply([]byte(c.before))
			if (err != nil) != (c.after == "") || err == nil && string(after) != c.after {
				t.Errorf("got %s %v, want %q", after, err, c.after)
			}
		})
	}
}

// A key comes out as it went in, whatever signs of pointers are in it.
func TestPointer(t *testing.T) {
	for key, want := range map[string]string{
		"plain": "plain", "example.com/key": "example.com~1key", "a~b": "a~0b", "a~1b": "a~01b", "~/~": "~0~1~0", "": "",
	} {
		got := write.Escape(key)
		if got != want {
			t.Errorf("%q becomes %q, want %q", key, got, want)
		}
		data, err := write.Encode([]write.Op{write.Add("/"+got, true)})
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := evanphx.DecodePatch(data)
		if err != nil {
			t.Fatal(err)
		}
		after, err := decoded.Apply([]byte(`{}`))
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		var object map[string]bool
		if err := json.Unmarshal(after, &object); err != nil || !object[key] || len(object) != 1 {
			t.Errorf("%q: the patch makes %s: %v", key, after, err)
		}
	}
}

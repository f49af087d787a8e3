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
		why     string
		patch   write.Op
		encoded string
		before  string
		after   string // empty where it does not apply
	}{
		"add":         {"a key comes", write.Add("/a", 1), `{"op":"add","path":"/a","value":1}`, `{}`, `{"a":1}`},
		"add again":   {"its value is another then", write.Add("/a", 1), `{"op":"add","path":"/a","value":1}`, `{"a":0}`, `{"a":1}`},
		"insert":      {"the others move", write.Add("/a/0", 1), `{"op":"add","path":"/a/0","value":1}`, `{"a":[2]}`, `{"a":[1,2]}`},
		"null":        {"it is a value", write.Add("/a", nil), `{"op":"add","path":"/a","value":null}`, `{}`, `{"a":null}`},
		"a nil slice": {"it is null, not left out", write.Add("/a", nothing), `{"op":"add","path":"/a","value":null}`, `{}`, `{"a":null}`},
		"false":       {"it is a value", write.Replace("/a", false), `{"op":"replace","path":"/a","value":false}`, `{"a":true}`, `{"a":false}`},
		"zero":        {"it is a value", write.Replace("/a", 0), `{"op":"replace","path":"/a","value":0}`, `{"a":1}`, `{"a":0}`},
		"empty":       {"it is a value", write.Replace("/a", ""), `{"op":"replace","path":"/a","value":""}`, `{"a":"b"}`, `{"a":""}`},
		"no element":  {"there is none to be another", write.Replace("/a/1", 1), `{"op":"replace","path":"/a/1","value":1}`, `{"a":[2]}`, ``},
		"remove":      {"its value is not looked at", write.Remove("/a"), `{"op":"remove","path":"/a"}`, `{"a":1,"b":2}`, `{"b":2}`},
		"no removing": {"of what is not there", write.Remove("/a"), `{"op":"remove","path":"/a"}`, `{}`, ``},
		"test":        {"it is so", write.Test("/a", 1), `{"op":"test","path":"/a","value":1}`, `{"a":1}`, `{"a":1}`},
		"test fails":  {"it is not so", write.Test("/a", 1), `{"op":"test","path":"/a","value":1}`, `{"a":2}`, ``},
		"nothing":     {"null is what is not there", write.Test("/a", nil), `{"op":"test","path":"/a","value":null}`, `{}`, `{}`},
		"something":   {"null is no value that is there", write.Test("/a", nil), `{"op":"test","path":"/a","value":null}`, `{"a":0}`, ``},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := write.Encode([]write.Op{c.patch})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("["+c.encoded+"]", string(data)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			decoded, err := evanphx.DecodePatch(data)
			if err != nil {
				t.Fatal(err)
			}
			after, err := decoded.Apply([]byte(c.before))
			if (err != nil) != (c.after == "") || err == nil && string(after) != c.after {
				t.Errorf("%s: got %s %v, want %q", c.why, after, err, c.after)
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

func TestEncodeFails(t *testing.T) {
	if _, err := write.Encode([]write.Op{write.Add("/a", func() {})}); err == nil {
		t.Error("what has no JSON is encoded")
	}
}

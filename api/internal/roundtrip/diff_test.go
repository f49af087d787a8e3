package roundtrip

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

// TestApply takes what diff found between was and is, and applies it to now.
func TestApply(t *testing.T) {
	cases := map[string]struct {
		why, was, is, now, want string
	}{
		"untouched": {
			why:  "there and back gives the original",
			was:  `{"a":1}`,
			is:   `{"a":1,"b":{"c":[1]}}`,
			now:  `{"a":1}`,
			want: `{"a":1,"b":{"c":[1]}}`,
		},
		"edited beside": {
			why:  "an edit of another field does not matter",
			was:  `{"a":1}`,
			is:   `{"a":1,"b":2}`,
			now:  `{"a":7}`,
			want: `{"a":7,"b":2}`,
		},
		"edited itself":  {"an edit of the field wins", `{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":3}`},
		"set since":      {"a field set since wins over the kept one", `{}`, `{"a":2}`, `{"a":3}`, `{"a":3}`},
		"removed":        {"what the original lacked goes again", `{"a":1,"b":2}`, `{"a":1}`, `{"a":1,"b":2}`, `{"a":1}`},
		"parent is gone": {"the user removed the object around it", `{"a":{"x":1}}`, `{"a":{"x":1,"y":2}}`, `{}`, `{}`},
		"in a list": {
			why:  "an element keeps its own",
			was:  `{"l":[{"n":1},{"n":2}]}`,
			is:   `{"l":[{"n":1},{"n":2,"k":3}]}`,
			now:  `{"l":[{"n":1},{"n":2}]}`,
			want: `{"l":[{"n":1},{"n":2,"k":3}]}`,
		},
		"list edited": {
			why:  "an index means nothing after the list was edited",
			was:  `{"l":[{"n":1},{"n":2}]}`,
			is:   `{"l":[{"n":1,"k":3},{"n":2}]}`,
			now:  `{"l":[{"n":2},{"n":1}]}`,
			want: `{"l":[{"n":2},{"n":1}]}`,
		},
		"list grown": {"lists of different length are values", `{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1]}`, `{"l":[1,2]}`},
		"slash and tilde in a key": {
			"keys of annotations have slashes",
			`{"m":{}}`, `{"m":{"a/b~1":"x"}}`, `{"m":{}}`, `{"m":{"a/b~1":"x"}}`,
		},
		"type changed": {"an object in place of a text", `{"a":"x"}`, `{"a":{"b":1}}`, `{"a":"x"}`, `{"a":{"b":1}}`},
		"null is none": {"null and absent are one", `{"a":null}`, `{}`, `{}`, `{}`},
		"empty object": {"present and empty differs from absent", `{}`, `{"a":{}}`, `{}`, `{"a":{}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			changes := diff("", decode(t, c.was), decode(t, c.is))
			data, err := json.Marshal(changes)
			if err != nil {
				t.Fatal(err)
			}
			var stored []change
			if err := json.Unmarshal(data, &stored); err != nil {
				t.Fatal(err)
			}
			now := decode(t, c.now)
			apply(now, stored)
			if diff := cmp.Diff(decode(t, c.want), now); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// FuzzApply feeds annotations that a client wrote by hand.
func FuzzApply(f *testing.F) {
	f.Add(`{"a":{"b":[1,{"c":2}]}}`,
		`[{"path":"/a/b/1/c","is":3},{"path":"","is":1},{"path":"/a/b/9"},{"path":"/a/b","was":"x","in":[{"path":"/0"}]}]`)
	f.Fuzz(func(t *testing.T, object, annotation string) {
		var changes []change
		fields := map[string]any{}
		if json.Unmarshal([]byte(annotation), &changes) != nil || json.Unmarshal([]byte(object), &fields) != nil {
			t.Skip()
		}
		apply(fields, changes)
		if _, err := json.Marshal(fields); err != nil {
			t.Errorf("the object cannot be encoded any more: %v", err)
		}
	})
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

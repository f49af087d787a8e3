package roundtrip_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

func TestWithKey(t *testing.T) {
	cases := map[string]struct {
		why      string
		in, want map[string]string
		value    string
	}{
		"set": {
			why: "other keys stay", in: map[string]string{"a": "1"}, value: "2", want: map[string]string{"a": "1", "k": "2"},
		},
		"replaced": {
			why: "the new value counts", in: map[string]string{"k": "1"}, value: "2", want: map[string]string{"k": "2"},
		},
		"made": {why: "a value needs a map", value: "2", want: map[string]string{"k": "2"}},
		"removed": {
			why: "no value, no key", in: map[string]string{"a": "1", "k": "1"}, want: map[string]string{"a": "1"},
		},
		"empty":          {why: "an empty value is none", in: map[string]string{"k": ""}, want: map[string]string{}},
		"nothing to set": {why: "absence needs no map"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(c.in)
			if diff := cmp.Diff(c.want, roundtrip.WithKey(c.in, "k", c.value)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(before, c.in); diff != "" {
				t.Errorf("the map given changed (-want +got):\n%s", diff)
			}
		})
	}
}

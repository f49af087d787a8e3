package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChosen(t *testing.T) {
	all := []entry{{name: "a"}, {name: "b"}, {name: "c"}}
	cases := map[string]struct {
		why    string
		choice string
		want   []string
	}{
		"none":            {"the default is all", "", []string{"a", "b", "c"}},
		"all":             {"", "*", []string{"a", "b", "c"}},
		"some":            {"in the order of the list", "c,a", []string{"a", "c"}},
		"all but one":     {"", "*,-b", []string{"a", "c"}},
		"but one first":   {"order does not matter", "-b,*", []string{"a", "c"}},
		"one and not it":  {"what is left out stays out", "a,-a", []string{}},
		"nothing but one": {"without a star nothing else is in", "-a", []string{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var choice []string
			if c.choice != "" {
				choice = strings.Split(c.choice, ",")
			}
			got, err := chosen(all, choice)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, names(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	for _, unknown := range []string{"d", "-d", "-", "", "-*"} {
		if _, err := chosen(all, []string{"*", unknown}); err == nil {
			t.Errorf("%q is accepted", unknown)
		}
	}
}

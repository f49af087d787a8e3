package inplace_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestAnnotations reads a state and a grace period by the newer key, else by the older one. An empty text is none.
func TestAnnotations(t *testing.T) {
	for why, c := range map[string]struct {
		newer, older string
		want         string // revision; empty for none
		fails        int    // 1 for the newer key, 2 for the older one
	}{
		"an empty text is none":           {newer: " "},
		"most pods never had an update":   {},
		"an older release wrote it":       {older: `{"revision":"b"}`, want: "b"},
		"the newer name holds":            {newer: `{"revision":"a"}`, older: `{"revision":"b"}`, want: "a"},
		"a newer release may know more":   {newer: `{"revision":"a","new":{"x":[1]}}`, want: "a"},
		"a user edited it":                {newer: " {\n\t\"revision\" : \"a\" , \"updateImages\" : true }\r\n", want: "a"},
		"the error names the key":         {newer: `{"revision":1}`, fails: 1},
		"the error names the older key":   {older: `no`, fails: 2},
		"a number is too large":           {newer: `{"graceSeconds":1e99,"updateTimestamp":7}`, fails: 1},
		"an unreadable key hides another": {newer: `{`, older: `{"revision":"b"}`, fails: 1},
	} {
		for _, keys := range [][3]string{
			{"", kruise.InPlaceUpdateStateKey, kruise.InPlaceUpdateStateKeyOld},
			{"grace", kruise.InPlaceUpdateGraceKey, kruise.InPlaceUpdateGraceKeyOld},
		} {
			pod := running(template(container("c1", "app:1")), "web-1")
			pod.Annotations = map[string]string{}
			for i, text := range []string{c.newer, c.older} {
				if text != "" {
					pod.Annotations[keys[i+1]] = strings.TrimSpace(text)
				}
			}
			got := ""
			state, err := inplace.StateOf(pod, nil)
			if state != nil {
				got = state.Revision
			}
			if keys[0] == "grace" {
				var grace *kruise.InPlaceUpdateGrace
				if grace, err = inplace.GraceOf(pod, nil); grace != nil {
					got = grace.Revision
				}
			}
			if got != c.want || (err != nil) != (c.fails > 0) ||
				err != nil && !strings.Contains(err.Error(), "["+keys[c.fails]+"]: ") {
				t.Errorf("%s: %s: got %q, %v", why, keys[1], got, err)
			}
		}
	}
}

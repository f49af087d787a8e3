package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// A planted word is found where readers of the documentation meet it, and nowhere else.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		path, text string
		want       []string
	}{
		"comment of a package": {"a/doc.go", "// Package a tells why.\npackage a", []string{`a/doc.go:1: "tells"`}},
		"comment of a function": {
			"a/a.go", "package a\n\n// F is for whoever\n// calls it anew.\nfunc F() {}",
			[]string{`a/a.go:3: "whoever"`, `a/a.go:4: "anew"`},
		},
		"comment of a field": {
			"a/a.go", "package a\n\ntype T struct {\n\t// F is read by nobody.\n\tF int\n\t// g is read by nobody.\n\tg int\n}",
			[]string{`a/a.go:4: "nobody"`},
		},
		"comment of a method": {
			"a/a.go", "package a\n\ntype T int\n\n// M lets go.\nfunc (t *T) M() {}", []string{`a/a.go:5: "lets go"`},
		},
		"comment of a constant": {
			"a/a.go", "package a\n\n// C is what comes of it.\nconst C = 1", []string{`a/a.go:3: "comes of"`},
		},
		"comment of an unexported type": {
			"a/a.go", "package a\n\n// t tells.\ntype t int\n\n// M tells.\nfunc (t) M() {}", nil,
		},
		"a word for workers":             {"a/a.go", "// Package a has a crew.\npackage a", []string{`a/a.go:1: "crew"`}},
		"a word that contains another":   {"a/a.go", "// Package a has tellers, and becomes official.\npackage a", nil},
		"words that are broken by lines": {"a.md", "It lets\ngo.\n", []string{`a.md:1: "lets go"`}},
		"a document": {
			"docs/a.md", "# A\n\nSomebody is at work.\n", []string{`docs/a.md:3: "Somebody"`, `docs/a.md:3: "is at work"`},
		},
		"code of a document": {
			"docs/a.md", "`tell`\n\n```\nnobody\n```\n\nnobody\n", []string{`docs/a.md:7: "nobody"`},
		},
		"tests":          {"a/a_test.go", "// Package a tells.\npackage a", nil},
		"generated code": {"a/zz_generated.deepcopy.go", "// Package a tells.\npackage a", nil},
		"the history":    {"CHANGELOG.md", "It tells.", nil},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			found, err := check(fstest.MapFS{c.path: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				text := f.String()
				got = append(got, text[:strings.LastIndex(text, `"`)+1])
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

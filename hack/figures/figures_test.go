package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plant writes files below a directory of the test.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCodeOf(t *testing.T) {
	const text = "// Package a is a comment.\npackage a // too\n\n/*\nvar b int\n*/ var c   int\nvar d = `e\n\n\t// f`\n"
	want := []string{"package a", "var c int", "var d = `e", "// f`"}
	var got []string
	for _, l := range codeOf([]byte(text)) {
		got = append(got, l.tokens)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines of code differ (-want +got):\n%s", diff)
	}
}

// A tree has what the go command reads, and no generated files.
func TestReadTree(t *testing.T) {
	root := plant(t, map[string]string{
		"a/a.go":            "package a\n",
		"a/a_test.go":       "package a\n",
		"a/zz_generated.go": "package a\n",
		"a/testdata/b.go":   "package b\n",
		"a/xtest/x.go":      "package xtest\n",
		"bin/b.go":          "package b\n",
		".cache/c.go":       "package c\n",
		"config/c.go":       "package config\n",
		"examples/e/e.go":   "package main\n",
		"hack/h/h.go":       "package main\n",
		"test/t/t.go":       "package t\n",
		"README.md":         "# A\n",
	})
	files, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	paths := func(files []source) string {
		var all []string
		for _, f := range files {
			all = append(all, f.path)
		}
		return strings.Join(all, " ")
	}
	got := map[string]string{
		"library": paths(filter(files, library)),
		"tools":   paths(filter(files, tools)),
		"tests":   paths(filter(files, helpsTests)),
	}
	want := map[string]string{"library": "a/a.go", "tools": "hack/h/h.go test/t/t.go", "tests": "a/a_test.go a/xtest/x.go"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
	if n, err := directories(root); n != 5 || err != nil {
		t.Errorf("directories = %d, %v", n, err)
	}
}

func TestWider(t *testing.T) {
	files := []source{{text: "\t" + strings.Repeat("ä", 119) + "\r\n" + strings.Repeat("a", 121)}}
	if n := wider(files, 120); n != 1 {
		t.Errorf("%d lines are wider, want 1", n)
	}
}

func TestRepeated(t *testing.T) {
	run := func(prefix string, n int) string {
		var text strings.Builder
		for i := range n {
			text.WriteString("f(" + prefix + strings.Repeat("1", i+1) + ")\n")
		}
		return text.String()
	}
	const imports = "package a\nimport (\n\"a\"\n\"b\"\n\"c\"\n\"d\"\n\"e\"\n\"f\"\n\"g\"\n\"h\"\n)\n"
	cases := map[string]struct {
		files []string
		want  int
	}{
		"a run in two files":         {[]string{run("a", 9), run("b", 3) + run("a", 9)}, 18},
		"a run twice in a file":      {[]string{run("a", 8) + run("b", 2) + run("a", 8)}, 16},
		"a short run":                {[]string{run("a", 7) + run("b", 1), run("a", 7) + run("c", 1)}, 0},
		"comments and layout differ": {[]string{run("a", 8), "// c\n" + strings.ReplaceAll(run("a", 8), "(", " (")}, 16},
		"imports repeat":             {[]string{imports + run("a", 1), imports + run("a", 1)}, 0},
		"lines that are all alike":   {[]string{strings.Repeat("f()\n", 10)}, 10},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			var files []source
			for _, text := range c.files {
				files = append(files, source{code: codeOf([]byte(text))})
			}
			if got := repeated(files); got != c.want {
				t.Errorf("%d lines are repeated, want %d", got, c.want)
			}
		})
	}
}

// The figures of a module with internal packages, a controller that writes, and one that does not.
func TestMeasure(t *testing.T) {
	root := plant(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25.0\n",
		"client/client.go": "package client\n\ntype Client interface{ Writer }\n\n" +
			"type Writer interface{ Patch(); Get() }\n",
		"internal/x/x.go":           "package x\n\nvar V int\n",
		"internal/x/x_test.go":      "package x_test\n\nimport _ \"example.com/m/internal/z\"\n",
		"internal/y/y.go":           "package y\n\nvar V int\n" + strings.Repeat("var _ int\n", small),
		"internal/z/z.go":           "package z\n",
		"internal/xtest/x.go":       "package xtest\n\nimport _ \"example.com/m/internal/y\"\n",
		"daemon/internal/w/w.go":    "package w\n",
		"controllers/controller.go": "package controllers\n\nimport _ \"example.com/m/controllers/cloneset\"\n",
		"controllers/cloneset/plan.go": "package cloneset\n\n" +
			"import (\n\"example.com/m/client\"\n\"example.com/m/internal/y\"\n)\n\n" +
			"type R struct{ c client.Client; own }\n\ntype own struct{}\n\nfunc (own) Create() {}\n\n" +
			"func (r R) F() { r.c.Patch(); r.c.Get(); r.Create(); go r.c.Patch(); _ = y.V }\n",
		"controllers/job/plan.go": "package job\n\nimport _ \"example.com/m/internal/x\"\n",
		"controllers/cloneset/act/act.go": "package act\n\nimport \"example.com/m/client\"\n\n" +
			"func F(w client.Writer) { w.Patch() }\n",
		"controllers/job/status.go": "package job\n",
	})
	figures, err := measure(root, false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range figures {
		got[f.Name] = f.Value
	}
	calls, writers, err := writes(root, "controllers", []string{"example.com/m/client"})
	if err != nil {
		t.Fatal(err)
	}
	got["calls"], got["writers"] = calls, writers
	want := map[string]int{
		"public packages": 5, "exported identifiers": 4, "exported identifiers and members": 9,
		"mentions of internal types": 0, "top-level directories": 4, "internal packages": 4, "small internal packages": 2,
		"internal packages with one importer": 1, "nested internal packages": 1, "own packages of controllers/cloneset": 3,
		"controllers": 2, "file names of controllers": 2, "calls": 3, "writers": 1,
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d, want %d", name, got[name], n)
		}
	}
}

func TestDifference(t *testing.T) {
	const before = "mode: atomic\nm/a/a.go:1.1,2.2 1 3\nm/a/b.go:1.1,2.2 1 1\nm/b/c.go:1.1,2.2 1 0\n"
	const after = "mode: atomic\nm/a/a.go:1.1,2.2 1 3\nm/a/a.go:3.1,4.2 1 1\nm/a/b.go:1.1,2.2 1 2\n" +
		"m/b/c.go:1.1,2.2 1 0\nm/test/t.go:1.1,2.2 1 1\nm/b/zz_d.go:1.1,2.2 1 1\nm/b/d.go:1.1,2.2 0 1\n"
	if got, want := difference(before, after, "m"), (way{files: 2, own: 1, packages: 1}); got != want {
		t.Errorf("difference = %+v, want %+v", got, want)
	}
}

package exported

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planted is a module in which package a exports what it must not, in each way that there is.
func planted() map[string]string {
	return map[string]string{
		"go.mod":                "module example.com/m\n\ngo 1.25.0\n",
		"m.go":                  "package m\n\ntype T int\n",
		"internal/x/x.go":       "package x\n\ntype T struct{}\n\ntype I interface{ M() }\n\ntype G[P any] struct{ V P }\n",
		"a/internal/y/y.go":     "package y\n\ntype T int\n",
		"xtest/x.go":            "package xtest\n\nimport \"example.com/m/internal/x\"\n\nvar V x.T\n",
		"test/cluster/c.go":     "package cluster\n\nimport \"example.com/m/internal/x\"\n\nvar V x.T\n",
		"hack/tool/main.go":     "package main\n\nfunc main() {}\n",
		"examples/own/lib/l.go": "package lib\n\nvar V int\n",
		"cmd/main.go":           "package main\n\nfunc main() {}\n",
		"a/zz_generated.go":     "package a\n\nfunc (Struct) DeepCopy() int { return 0 }\n",
		"a/v2/v.go":             "package v2\n\ntype T int\n",
		"a/a.go": `package a

import (
	v2 "example.com/m/a/v2"
	"example.com/m/a/internal/y"
	"example.com/m/internal/x"
)

type Alias = x.T
type Named []x.T
type Constrained[P x.I] struct{}
type Hidden struct{ hidden }
type HiddenAlias = hidden
type hidden struct{ Field x.T; field x.T }
func (hidden) Method(x.T) {}
type Struct struct {
	Public v2.T
	Field  map[string]*x.T
	field  x.T
	x.G[int]
}
type Interface interface {
	x.I
	Method(func(p chan x.T)) (n int, err error)
	method(x.T)
}
const Const y.T = 1
var Var x.G[Struct]
var Through Alias
func Func[P x.I, Q any](p P, q ...Q) *x.G[x.T] { return nil }
func Clean(a, b int, c func(d string) error) (e Struct) { return }
func private(x.T) {}
func (s *Struct) Method() x.I { private(s.field); return nil }
`,
	}
}

func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSurfaces(t *testing.T) {
	surfaces, err := Surfaces(plant(t, planted()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, s := range surfaces {
		for _, i := range s.Identifiers {
			line := i.Text
			if len(i.Mentions) > 0 {
				line += " !" + strings.Join(i.Mentions, " ")
			}
			got[s.Path] = append(got[s.Path], line)
		}
	}
	want := map[string][]string{
		"a/v2": {"type T int"},
		"a": {
			"type Alias = x.T !internal/x.T",
			"func Clean(int, int, func(string) error) Struct",
			"const Const y.T = 1 !a/internal/y.T",
			"type Constrained[P x.I] struct !internal/x.I",
			"func Func[P x.I, Q any](P, ...Q) *x.G[x.T] !internal/x.G internal/x.I internal/x.T",
			"type Hidden struct",
			"field (Hidden) Field x.T !internal/x.T",
			"method (Hidden) Method(x.T) !internal/x.T",
			"type HiddenAlias = hidden",
			"field (HiddenAlias) Field x.T !internal/x.T",
			"method (HiddenAlias) Method(x.T) !internal/x.T",
			"type Interface interface, with methods that are not exported",
			"embeds (Interface) x.I !internal/x.I",
			"method (Interface) Method(func(chan x.T)) (int, error) !internal/x.T",
			"type Named []x.T !internal/x.T",
			"type Struct struct",
			"field (Struct) Field map[string]*x.T !internal/x.T",
			"embeds (Struct) G x.G[int] !internal/x.G",
			"method (*Struct) Method() x.I !internal/x.I",
			"field (Struct) Public av2.T",
			"var Through Alias",
			"var Var x.G[Struct] !internal/x.G",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("surfaces differ (-want +got):\n%s", diff)
	}
}

func TestPublic(t *testing.T) {
	for path, want := range map[string]bool{
		"inplace": true, "controllers/cloneset": true, "protest/x": false, "internal/x": false, "api/internal/x": false,
		"test/cluster": false, "hack/tool": false, "examples/own": false, "internals": true,
	} {
		if got := Public(path); got != want {
			t.Errorf("Public(%q) = %v, want %v", path, got, want)
		}
	}
}

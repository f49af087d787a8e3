package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write identifiers.txt")

// identifiers.txt has what the API packages export, and renames lead to what they export.
func TestIdentifiers(t *testing.T) {
	all := map[string]bool{}
	for _, pkg := range []string{"kruise", "apps/v1alpha1", "apps/v1beta1", "policy/v1alpha1", "policy/v1beta1"} {
		for _, ident := range exportedBy(t, filepath.Join("..", "..", "api", pkg)) {
			all["api/"+pkg+" "+ident] = true
		}
	}
	want := strings.Join(slices.Sorted(maps.Keys(all)), "\n") + "\n"
	if *update {
		if err := os.WriteFile("identifiers.txt", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(identifiers, want); diff != "" {
		t.Errorf("run with -update (-file +packages):\n%s", diff)
	}
	names, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range names.renamed {
		if !names.exported[to] {
			t.Errorf("%v is renamed to %v, which does not exist", from, to)
		}
	}
}

// exportedBy returns the exported identifiers of a package, without methods.
func exportedBy(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	add := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			if ident.IsExported() {
				all = append(all, ident.Name)
			}
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						add(s.Names...)
					}
				}
			}
		}
	}
	return all
}

// Each path of the package map has its place here, or a hint.
func TestPaths(t *testing.T) {
	const api, manager, clients = apiModule + "/", managerModule + "/", here + "/api/client"
	for path, want := range map[string]string{
		api + "apps/pub":                                         here + "/api/kruise",
		api + "apps/v1alpha1":                                    here + "/api/apps/v1alpha1",
		api + "apps/v1beta1":                                     here + "/api/apps/v1beta1",
		api + "policy/v1alpha1":                                  here + "/api/policy/v1alpha1",
		api + "client/clientset/versioned":                       clients + "/clientset/versioned",
		api + "client/clientset/versioned/fake":                  clients + "/clientset/versioned/fake",
		api + "client/clientset/versioned/scheme":                clients + "/clientset/versioned/scheme",
		api + "client/clientset/versioned/typed/apps/v1alpha1":   clients + "/clientset/versioned/typed/apps/v1alpha1",
		api + "client/informers/externalversions":                clients + "/informers/externalversions",
		api + "client/listers/apps/v1alpha1":                     clients + "/listers/apps/v1alpha1",
		api + "utils/scheme":                                     "sigs.k8s.io/controller-runtime/pkg/scheme",
		api + "utils/configuration":                              here + "/api/kruise",
		manager + "apis/apps/pub":                                here + "/api/kruise",
		manager + "apis/apps/v1alpha1":                           here + "/api/apps/v1alpha1",
		manager + "apis/policy/v1beta1":                          here + "/api/policy/v1beta1",
		manager + "pkg/client/clientset/versioned":               clients + "/clientset/versioned",
		manager + "pkg/client/informers/externalversions/policy": clients + "/informers/externalversions/policy",
		manager + "pkg/client/listers/policy/v1alpha1":           clients + "/listers/policy/v1alpha1",
		manager + "pkg/util/configuration":                       here + "/api/kruise",
	} {
		p, is := placeOf(path)
		if !is || p.path != want {
			t.Errorf("%s is %s, want %s", path, p.path, want)
		}
		if dir, ok := strings.CutPrefix(want, here+"/"); ok {
			if files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go")); err != nil || len(files) == 0 {
				t.Errorf("%s is no package, %v", want, err)
			}
		}
	}
	for _, path := range []string{
		apiModule, manager + "apis", manager + "apis/apps/defaults", manager + "pkg/client",
		manager + "pkg/util/expectations", manager + "pkg/util/inplaceupdate", manager + "pkg/control/sidecarcontrol",
	} {
		if p, is := placeOf(path); !is || p.path != "" || p.hint == "" {
			t.Errorf("%s: %+v, %t", path, p, is)
		}
	}
	for _, path := range []string{"github.com/openkruise/rollouts/api", "github.com/openkruise/kruise-game/apis", "fmt"} {
		if _, is := placeOf(path); is {
			t.Errorf("%s is no package of the reference", path)
		}
	}
}

func TestRewrite(t *testing.T) {
	names, err := load()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		why, source, want string
		// left are the reports of what needs the user.
		left []string
	}{
		"paths alone": {
			why: "identifiers of the same package and name stay",
			source: `import (
	"github.com/openkruise/kruise-api/apps/pub"
	appsv1alpha1 "github.com/openkruise/kruise-api/apps/v1alpha1"
)

var set appsv1alpha1.CloneSet

const ready = pub.InPlaceUpdateReady
`,
			want: `import (
	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	pub "github.com/kruisekit/kruisekit/api/kruise"
)

var set appsv1alpha1.CloneSet

const ready = pub.InPlaceUpdateReady
`,
		},
		"an identifier of another package": {
			why: "keys of pods are in api/kruise, and the new import takes a free name",
			source: `import "github.com/openkruise/kruise/apis/apps/v1alpha1"

var kruise, key = v1alpha1.CloneSet{}, v1alpha1.SpecifiedDeleteKey
`,
			want: `import (
	kruisex "github.com/kruisekit/kruisekit/api/kruise"
)

import "github.com/kruisekit/kruisekit/api/apps/v1alpha1"

var kruise, key = v1alpha1.CloneSet{}, kruisex.SpecifiedDeleteKey
`,
		},
		"all identifiers of another package": {
			why: "an import without a use does not compile",
			source: `import (
	"fmt"

	"github.com/openkruise/kruise-api/apps/v1alpha1"
)

func main() { fmt.Println(v1alpha1.CloneSetInstanceID) }
`,
			want: `import (
	"fmt"

	kruise "github.com/kruisekit/kruisekit/api/kruise"
)

func main() { fmt.Println(kruise.CloneSetInstanceIDKey) }
`,
		},
		"clients": {
			why: "names of clients are equal",
			source: `import "github.com/openkruise/kruise-api/client/clientset/versioned"

var make = versioned.NewForConfigOrDie
`,
			want: `import "github.com/kruisekit/kruisekit/api/client/clientset/versioned"

var make = versioned.NewForConfigOrDie
`,
		},
		"no counterpart": {
			why: "a package, an identifier and a method are reported with their lines",
			source: `import (
	"github.com/openkruise/kruise-api/apps/v1alpha1"
	"github.com/openkruise/kruise/pkg/util/expectations"
)

var scale = expectations.NewScaleExpectations()

func wait(u *v1alpha1.UnitedDeployment) any {
	return u.Spec.Topology.ScheduleStrategy.GetUnschedulableLastDuration() + v1alpha1.LabelMetadataName
}
`,
			want: `import (
	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/openkruise/kruise/pkg/util/expectations"
)

var scale = expectations.NewScaleExpectations()

func wait(u *v1alpha1.UnitedDeployment) any {
	return u.Spec.Topology.ScheduleStrategy.GetUnschedulableLastDuration() + v1alpha1.LabelMetadataName
}
`,
			left: []string{
				"a.go:5: left: github.com/openkruise/kruise/pkg/util/expectations has no counterpart; see package ledger",
				"a.go:11: left: the method GetUnschedulableLastDuration has no counterpart; " +
					"1.9 has GetUnschedulableDuration; read the field UnschedulableDuration",
				"a.go:11: left: apps/v1alpha1.LabelMetadataName has no counterpart",
			},
		},
		"both projects": {
			why: "the types of both cannot be in one scheme",
			source: `import (
	ours "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	theirs "github.com/openkruise/kruise-api/apps/v1alpha1"
)

var a, b = ours.AddToScheme, theirs.AddToScheme
`,
			left: []string{"a.go:4: left: github.com/kruisekit/kruisekit/api/apps/v1alpha1 is imported beside " +
				"github.com/openkruise/kruise-api/apps/v1alpha1: one scheme cannot have both"},
		},
		"another program": {
			why: "a variable of the name of an import is none",
			source: "import \"fmt\"\n\n" +
				"func f(v1alpha1 struct{ SpecifiedDeleteKey int }) { fmt.Println(v1alpha1.SpecifiedDeleteKey) }\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, findings, err := names.file("a.go", []byte("package a\n\n"+c.source))
			if err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				c.want = "package a\n\n" + c.want
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			var left []string
			for _, f := range findings {
				if f.left {
					left = append(left, fmt.Sprint(f))
				}
			}
			slices.Sort(left)
			slices.Sort(c.left)
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("%s: reports (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// A tree is left as it is without -write.
func TestTree(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a.go")
	source := "package a\n\nimport _ \"github.com/openkruise/kruise-api/apps/v1beta1\"\n"
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{false, true} {
		var out strings.Builder
		if left, err := tree(root, write, &out); err != nil || left > 0 || !strings.Contains(out.String(), ":3: changed: ") {
			t.Errorf("%d left, %v: %s", left, err, out.String())
		}
		got, err := os.ReadFile(path)
		if changed := strings.Contains(string(got), here); err != nil || changed != write {
			t.Errorf("write %t: %v\n%s", write, err, got)
		}
	}
}

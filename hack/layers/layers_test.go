package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is allowed is in the tree, which make layers checks.
func TestForbidden(t *testing.T) {
	tests := map[string]struct {
		path, imported string
		want           string
	}{
		"a pod primitive does not know the kinds": {"scale", module + "/api/apps/v1beta1", "does not know the kinds"},
		"a primitive does not take its sibling":   {"scale", module + "/inplace", "siblings"},
		"its parent is another one":               {"spread", module + "/workload", "siblings"},
		"the one below does not look up":          {"revision", module + "/inplace", "siblings"},
		"the ledger does not know the driver":     {"ledger", module + "/driver", "siblings"},
		"a primitive sees nothing shared":         {"scale", module + "/internal/owned", "down only"},
		"the kinds see no primitive":              {"api/apps/v1beta1", module + "/inplace", "down only"},
		"decisions of a kind see no reconciler": {
			"controllers/daemonset/internal/placement", module + "/controllers/daemonset", "down only",
		},
		"an example takes no internal decision": {"examples/embed", module + "/internal/ordinals", "embedder"},
		"a primitive does not write":            {"scale", module + "/ledger", "down only"},
		"what writes sees nothing shared":       {"ledger", module + "/internal/owned", "down only"},
		"shared code sees no controller":        {"internal/owned", module + "/controllers/cloneset", "down only"},
		"a controller takes no sibling": {
			"controllers/cloneset", module + "/controllers/sidecarset", "siblings",
		},
		"a controller takes no webhook":                 {"controllers/cloneset", module + "/webhooks/pod", "siblings"},
		"a controller does not know the list":           {"controllers/cloneset", module + "/controllers", "down only"},
		"one list does not know another":                {"controllers", module + "/webhooks", "siblings"},
		"internals do not know who shares them":         {"daemon/internal/x", module + "/daemon/imagepull", "siblings"},
		"and see no other kind":                         {"webhooks/cloneset", module + "/webhooks/daemonset", "siblings"},
		"the machinery sees no kind":                    {"webhooks/kinds", module + "/webhooks/cloneset", "siblings"},
		"cri shares nothing":                            {"daemon/cri", module + "/daemon/internal/x", "siblings"},
		"cri does not know who uses it":                 {"daemon/cri", module + "/daemon/imagepull", "siblings"},
		"an example can only take what an embedder can": {"examples/kruise-manager", module + "/internal/owned", "embedder"},
		"an example is not there for others": {
			"examples/kruise-daemon", module + "/examples/kruise-manager/options", "siblings",
		},
		"which knows neither of them": {
			"examples/reference/gates", module + "/examples/kruise-manager/options", "siblings",
		},
		"the library does not need the test cluster": {
			"controllers/cloneset", module + "/test/cluster", "test/ or hack/",
		},
		"nobody takes the inside of Kubernetes": {
			"controllers/cloneset", "k8s.io/kubernetes/pkg/apis/core", "nobody",
		},
		"grpc is for nobody else":                       {"daemon/imagepull", "google.golang.org/grpc", "only daemon/cri"},
		"not even the tooling takes Kubernetes' inside": {"test/cluster", "k8s.io/kubernetes/cmd", "nobody"},
		"manifests know nobody":                         {"config/crd", module + "/internal/owned", "siblings"},
		"what is made for tests stays there": {
			"api/apps/v1beta1", module + "/api/internal/roundtrip/roundtriptest", "made for tests",
		},
		"the root package is documentation with no arms": {"", module + "/inplace", "down only"},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			if got := forbidden(tt.path, tt.imported); !strings.Contains(got, tt.want) {
				t.Errorf("forbidden(%q, %q) = %q, want %q", tt.path, tt.imported, got, tt.want)
			}
		})
	}
}

func TestForbiddenInTest(t *testing.T) {
	tests := map[string]struct {
		path, imported string
		want           bool
	}{
		"builders are shared":                 {"inplace", module + "/internal/build", false},
		"the cluster is for tests":            {"controllers/cloneset", module + "/test/cluster", false},
		"a test takes its own package":        {"controllers/cloneset", module + "/controllers/cloneset", false},
		"a test of a primitive takes no more": {"inplace", module + "/controllers/cloneset", true},
		"a package made for tests": {
			"api/apps/v1beta1", module + "/api/internal/roundtrip/roundtriptest", false,
		},
		"a test does not need grpc":             {"daemon/imagepull", "google.golang.org/grpc", true},
		"a test of a controller has no sibling": {"controllers/cloneset", module + "/controllers/sidecarset", true},
		"but it may convert what it stores":     {"controllers/cloneset", module + "/webhooks/conversion", false},
		"a test of a primitive stores nothing":  {"inplace", module + "/webhooks/conversion", true},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			if got := forbiddenInTest(tt.path, tt.imported); (got != "") != tt.want {
				t.Errorf("forbiddenInTest(%q, %q) = %q, want a finding: %v", tt.path, tt.imported, got, tt.want)
			}
		})
	}
}

func TestCheckPackage(t *testing.T) {
	tests := map[string]struct {
		in   listed
		want string
	}{
		"a package needs a place": {listed{ImportPath: module + "/plans", Doc: "x"}, "no layer"},
		"a package needs a comment": {
			listed{ImportPath: module + "/inplace", GoFiles: []string{"a.go"}}, "no package comment",
		},
		"a directory of tests needs none": {listed{ImportPath: module + "/test/e2e"}, ""},
		"a name must say something":       {listed{ImportPath: module + "/internal/util", Doc: "x"}, `"util" says nothing`},
		"a primitive stays pure through others": {
			listed{ImportPath: module + "/inplace", Doc: "x", Deps: []string{"k8s.io/client-go/rest"}},
			"depends on k8s.io/client-go",
		},
		"a controller needs a client": {
			listed{ImportPath: module + "/controllers/cloneset", Doc: "x", Deps: []string{"k8s.io/client-go/rest"}}, "",
		},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			got := strings.Join(checkPackage(tt.in), "\n")
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("checkPackage = %q, want %q", got, tt.want)
			}
		})
	}
}

// A breach in the files of a reconciler is found, and what does the same elsewhere is not.
func TestCheckReconciler(t *testing.T) {
	long := "func (r) Reconcile() {\n" + strings.Repeat("\t_ = 1\n", longestReconcile) + "}\n"
	for why, tt := range map[string]struct {
		path, file, text string
		doc              string
		want             string
	}{
		"a plan waits for nothing": {
			path: "controllers/a", file: "plan.go", text: "import \"context\"\n", want: "plan.go imports context",
		},
		"a status is not written where it is decided": {
			path: "controllers/a", file: "status.go",
			text: "import _ \"sigs.k8s.io/controller-runtime/pkg/client\"\n", want: "status.go imports sigs",
		},
		"nor below the client": {
			path: "controllers/a", file: "build.go",
			text: "import _ \"sigs.k8s.io/controller-runtime/pkg/client/apiutil\"\n", want: "build.go imports sigs",
		},
		"client-go is a client": {
			path: "controllers/a", file: "plan.go", text: "import _ \"k8s.io/client-go/tools/record\"\n",
			want: "plan.go imports k8s.io/client-go/tools/record",
		},
		"a sender is one": {
			path: "controllers/a", file: "plan.go", text: "import _ \"" + module + "/driver/runtimeclient\"\n",
			want: "does no I/O",
		},
		"a terminal error is a value": {
			path: "controllers/a", file: "plan.go", text: "import _ \"sigs.k8s.io/controller-runtime/pkg/reconcile\"\n",
		},
		"observe reads":              {path: "controllers/a", file: "observe.go", text: "import \"context\"\n"},
		"a package below is its own": {path: "controllers/a/b", file: "plan.go", text: "import \"context\"\n"},
		"a plan of a webhook":        {path: "webhooks/a", file: "plan.go", text: "import \"context\"\n"},
		"another name": {
			path: "controllers/a", file: "other.go", want: "other.go is a name of its own",
		},
		"another name that is explained": {
			path: "controllers/a", file: "other.go", doc: "// Package a has other.go for the rest.\n",
		},
		"a reconcile that does all itself": {
			path: "controllers/a", file: "reconciler.go", text: "type r struct{}\n\n" + long,
			want: "Reconcile has 42 lines",
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"doc.go": tt.doc + "package a\n", tt.file: "package a\n\n" + tt.text}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found, err := checkReconciler(listed{
				ImportPath: module + "/" + tt.path, Dir: dir, GoFiles: []string{"doc.go", tt.file},
			})
			got := strings.Join(found, "\n")
			if err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("found %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestRun checks a module with one fault of each sort that only shows on disk.
func TestRun(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module " + module +
			"\n\ngo 1.26.0\n\nrequire k8s.io/api v0.36.0\n\nreplace k8s.io/api => ./elsewhere\n",
		"doc.go":                "// Package kruisekit is documented.\npackage kruisekit\n",
		"elsewhere/go.mod":      "module k8s.io/api\n",
		"inplace/inplace.go":    "// Package inplace is documented.\npackage inplace\n\nfunc init() {}\n",
		"scale/scale.go":        "// Package scale is documented.\npackage scale\n\nimport _ \"" + module + "/inplace\"\n",
		"scale/tagged_test.go":  "//go:build e2e\n\npackage scale\n\nimport _ \"" + module + "/controllers/a\"\n",
		"controllers/a/plan.go": "package a\n\nimport _ \"context\"\n",
		"examples/x/main.go": "// X has an init function, as a main may.\npackage main\n\nfunc init() {}\n\n" +
			"func main() {}\n",
		"internal/x/x.go": "// Package x is documented.\npackage x\n\ntype T struct{}\n\ntype G[P any] struct{ V P }\n",
		"driver/driver.go": "// Package driver is documented.\npackage driver\n\nimport \"" + module + "/internal/x\"\n\n" +
			"type Alias = x.T\n\ntype Field struct { F map[string]*x.T; f x.T }\n\ntype Hidden struct { hidden }\n\n" +
			"type Pointed struct { *hidden }\n\ntype other = hidden\n\ntype Renamed struct { *other }\n\n" +
			"type hidden struct { F x.T }\n\ntype Method struct{}\n\nfunc (Method) M(x.T) {}\n\n" +
			"type Clean struct { f x.T }\n\ntype Through struct { A Alias }\n\nvar Var x.G[int]\n\n" +
			"func Func[P x.G[int]](func() x.T) {}\n\nfunc unexported(c Clean) x.T { return c.f }\n",
		"inplace/notours/go.mod": "module example.com/nested\n",
		"inplace/notours/n.go":   "package notours\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, packages, err := run(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"controllers/a: has no package comment",
		"controllers/a: plan.go imports context: it decides, and does no I/O",
		"driver: Alias mentions " + module + "/internal/x.T",
		"driver: Field mentions " + module + "/internal/x.T",
		"driver: Func mentions " + module + "/internal/x.G",
		"driver: Hidden mentions " + module + "/internal/x.T",
		"driver: Method mentions " + module + "/internal/x.T",
		"driver: Pointed mentions " + module + "/internal/x.T",
		"driver: Renamed mentions " + module + "/internal/x.T",
		"driver: Var mentions " + module + "/internal/x.G",
		"driver: imports " + module + "/internal/x: arrows point down only",
		"go.mod: asks for go 1.26.0, the floor is 1.24",
		"go.mod: replaces k8s.io/api, which an embedder would have to repeat",
		"go.mod: requires k8s.io/api v0.36.0, the floor is v0.34.x",
		"inplace: inplace.go has an init function",
		"scale: a test imports " + module + "/controllers/a: arrows point down only",
		"scale: imports " + module + "/inplace: siblings do not import each other",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if packages != 7 {
		t.Errorf("saw %d packages, want 7", packages)
	}
}

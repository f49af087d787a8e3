package main

import (
	"fmt"
	"strings"
)

// module is the path of the library.
const module = "github.com/kruisekit/kruisekit"

// A budget is what importing one package may cost.
type budget struct {
	path string
	// allowed are prefixes of the packages outside of the standard library and of this module that may come along.
	allowed []string
	// client says that the package writes to an API server, and so needs a client.
	client bool
	// most is the largest number of packages outside of the standard library, the package itself included.
	most int
}

// budgets is the table: one line for each package that is to be cheap. The bounds leave a little room above what was
// measured, for the next release of Kubernetes; raise one only with the reason in the commit.
func budgets() []budget {
	return []budget{
		{path: "api/kruise", allowed: kube(), most: 70},
		{path: "api/apps/v1beta1", allowed: kube(), most: 70},
		{path: "workload/eligible", allowed: append(kube(), "k8s.io/component-helpers"), most: 80},
		{path: "inplace", allowed: kube(), most: 76},
		{path: "launch", allowed: kube(), most: 70},
		{path: "lifecycle", allowed: kube(), most: 70},
		{path: "note", allowed: kube(), most: 70},
		{path: "revision", allowed: kube(), most: 70},
		{path: "scale", allowed: kube(), most: 71},
		{path: "workload", allowed: kube(), most: 78},
		{path: "workload/native", allowed: kube(), most: 80},
		{path: "write", allowed: kube(), most: 70},
		{path: "protection", allowed: kube(), most: 70},
		{path: "imagepull", allowed: append(kube(), images()...), most: 75},
		{path: "containerrestart", allowed: kube(), most: 78},
		{path: "pub", allowed: kube(), most: 80},
		{path: "driver", allowed: kube(), most: 76},
		{
			path:    "driver/clientgo",
			allowed: append(append(kube(), clients()...), "gopkg.in/evanphx/json-patch.v4"),
			client:  true,
			most:    260,
		},
		{path: "driver/runtimeclient", allowed: append(kube(), clients()...), client: true, most: 260},
		{path: "ledger", allowed: append(kube(), clients()...), client: true, most: 255},
		{path: "sidecar", allowed: kube(), most: 80},
	}
}

// kube is what the types of pods need.
func kube() []string {
	return []string{
		"github.com/fxamacker/cbor", "github.com/go-logr/logr", "github.com/gogo/protobuf", "github.com/json-iterator/go",
		"github.com/modern-go",
		"github.com/x448/float16", "go.yaml.in/yaml", "golang.org/x/net", "golang.org/x/text", "gopkg.in/inf.v0",
		"k8s.io/api", "k8s.io/apimachinery", "k8s.io/klog", "k8s.io/kube-openapi", "k8s.io/utils",
		"sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/structured-merge-diff", "sigs.k8s.io/yaml",
	}
}

// images is what reading image references and hashing as the reference does needs.
func images() []string {
	return []string{
		"github.com/davecgh/go-spew", "github.com/distribution/reference", "github.com/opencontainers/go-digest",
	}
}

// clients is what the client of controller-runtime needs.
func clients() []string {
	return []string{
		"github.com/davecgh/go-spew", "github.com/emicklei/go-restful", "github.com/evanphx/json-patch",
		"github.com/go-openapi",
		"github.com/google", "github.com/josharian/intern", "github.com/mailru/easyjson", "github.com/munnerz/goautoneg",
		"github.com/pkg/errors",
		"golang.org/x/oauth2", "golang.org/x/sys", "golang.org/x/term",
		"golang.org/x/time", "google.golang.org/protobuf", "gopkg.in/yaml.v3", "k8s.io/client-go",
		"sigs.k8s.io/controller-runtime",
	}
}

// dear is what no package of the table may bring along, whatever its line allows.
func dear() []string {
	return []string{
		"k8s.io/client-go", "k8s.io/kubernetes", "sigs.k8s.io/controller-runtime", "google.golang.org/grpc",
		"github.com/prometheus",
	}
}

// A bill is what importing a package costs.
type bill struct {
	std, own int
	foreign  []string
	modules  int // lines in the embedder's go.mod, direct and indirect, without this module
}

func (b bill) String() string {
	kubernetes := 0
	for _, p := range b.foreign {
		if within(p, []string{"k8s.io", "sigs.k8s.io"}) {
			kubernetes++
		}
	}
	return fmt.Sprintf("%3d packages (%d own, %d k8s.io, %d others) of %d modules, and %d std",
		b.own+len(b.foreign), b.own, kubernetes, len(b.foreign)-kubernetes, b.modules, b.std)
}

// check returns what exceeds the budget.
func (b budget) check(got bill) []string {
	var findings []string
	for _, p := range got.foreign {
		switch {
		case within(p, dear()) && (!b.client || !within(p, clients())):
			findings = append(findings, "must not bring along "+p)
		case !within(p, b.allowed):
			findings = append(findings, "is not allowed to bring along "+p)
		}
	}
	if n := got.own + len(got.foreign); n > b.most {
		findings = append(findings, fmt.Sprintf("brings %d packages, the bound is %d", n, b.most))
	}
	return findings
}

func within(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

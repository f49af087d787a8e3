package binaries

import (
	"fmt"
	"path"
	"regexp"
	"runtime"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

// Subset names the programs that one level of test cluster needs.
type Subset string

const (
	// ControlPlane is what envtest calls its assets: etcd, kube-apiserver and kubectl.
	ControlPlane Subset = "control-plane"
	// Simulated adds the controllers, the scheduler and KWOK.
	Simulated Subset = "simulated"
	// Demo is a control plane with few controllers, for nodes that the caller plays.
	Demo Subset = "demo"
	// Nodes is what a real node runs, and the image registry. It builds on Linux only.
	Nodes Subset = "nodes"
)

// Subsets lists every subset, in the order in which All builds them.
func Subsets() []Subset { return []Subset{ControlPlane, Simulated, Demo, Nodes} }

// Programs lists the names of the programs in a subset.
func Programs(s Subset) ([]string, error) {
	switch s {
	case ControlPlane:
		return []string{"etcd", "kube-apiserver", "kubectl"}, nil
	case Simulated:
		return []string{"etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler", "kwok"}, nil
	case Demo:
		return []string{"etcd", "kube-apiserver", "kube-controllers"}, nil
	case Nodes:
		return []string{
			"etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler",
			"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "crane", "pause",
		}, nil
	}
	return nil, fmt.Errorf("unknown subset %q of binaries, want one of %v", s, Subsets())
}

// seccomp is the tag with which runc supports seccomp profiles. It needs libseccomp.
const seccomp = "seccomp"

// ownCode precedes the directory of a program of the project in a module that pins others.
const ownCode = "./"

// program says how one program is built.
type program struct {
	module  string // directory below this package
	pkg     string
	tags    string
	cgo     bool
	ldflags func(version string) string // given the version of the upstream module
	pinned  string                      // upstream module whose version ldflags wants
}

func catalogue() map[string]program {
	const containerd = "github.com/containerd/containerd/v2"
	programs := map[string]program{
		"etcd":  {module: "kubernetes", pkg: "go.etcd.io/etcd/server/v3"},
		"runc":  {module: "runc", pkg: "github.com/opencontainers/runc", tags: seccomp, cgo: true},
		"crane": {module: "crane", pkg: "github.com/google/go-containerregistry/cmd/crane"},
		"kwok":  {module: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
		"pause": {module: "pause", pkg: "."},
		// Of the project, and in the module whose packages it is made of.
		"kube-controllers": {module: "kubernetes", pkg: ownCode + "kube-controllers"},
	}
	for _, name := range kubernetesPrograms() {
		programs[name] = program{
			module: "kubernetes", pkg: kubernetes + "/cmd/" + name, pinned: kubernetes, ldflags: kubernetesVersion,
		}
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		programs[name] = program{
			module: "containerd", pkg: containerd + "/cmd/" + name, pinned: containerd,
			tags: "no_btrfs,no_devmapper,no_zfs",
			ldflags: func(version string) string {
				return " -X " + containerd + "/version.Version=" + strings.TrimPrefix(version, "v")
			},
		}
	}
	return programs
}

// kubernetesPrograms are those of which there is one for each version of Kubernetes.
func kubernetesPrograms() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"}
}

// majorVersion is the last part of the path of a module from its second major version on.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// kubernetesVersion stamps the version: without it the components call themselves v0.0.0 and refuse each other.
func kubernetesVersion(version string) string {
	const pkg = " -X k8s.io/component-base/version."
	part := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(part) < 3 {
		return ""
	}
	return pkg + "gitVersion=" + version + pkg + "gitMajor=" + part[0] + pkg + "gitMinor=" + part[1]
}

// arguments of `go build` but for the output, for programs of one module.
func (c Cache) arguments(names []string, tags string) ([]string, error) {
	ldflags, pkgs := "-s -w", []string{}
	for _, name := range names {
		p := catalogue()[name]
		pkgs = append(pkgs, p.pkg)
		if p.ldflags == nil {
			continue
		}
		version, err := c.version(p)
		if err != nil {
			return nil, err
		}
		// The linker ignores what a program does not have.
		if stamp := p.ldflags(version); !strings.Contains(ldflags, stamp) {
			ldflags += stamp
		}
	}
	// -s -w leaves out debugging information. Not to compile it in the first place saves a tenth of the time.
	args := []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", ldflags}
	if tags != "" {
		args = append(args, "-tags", tags)
	}
	return append(args, pkgs...), nil
}

// executable is what the go command calls the program: the last part of the path of its package, but for a version.
func (p program) executable() string {
	dir := p.pkg
	if dir == "." {
		dir = p.module
	}
	if base := path.Base(dir); majorVersion.MatchString(base) {
		dir = path.Dir(dir)
	}
	return path.Base(dir)
}

// buildTags are those of a build on this machine: runc gets no seccomp for want of libseccomp.
func (p program) buildTags() string {
	if p.tags == seccomp && len(packages.Missing(packages.Of(packages.All(), packages.Seccomp))) > 0 {
		return ""
	}
	return p.tags
}

func (p program) environment() []string {
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	return []string{cgo, "GOWORK=off", "GOFLAGS=", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

package binaries

import (
	"fmt"
	"runtime"
	"strings"
)

// Subset names the programs that one level of test cluster needs.
type Subset string

const (
	// ControlPlane is what envtest calls its assets: etcd, kube-apiserver and kubectl.
	ControlPlane Subset = "control-plane"
	// Simulated adds the controllers, the scheduler and KWOK.
	Simulated Subset = "simulated"
	// Nodes is what a real node runs, and the image registry. It builds on Linux only.
	Nodes Subset = "nodes"
)

// Subsets lists every subset, in the order in which All builds them.
func Subsets() []Subset { return []Subset{ControlPlane, Simulated, Nodes} }

// Programs lists the names of the programs in a subset.
func Programs(s Subset) ([]string, error) {
	switch s {
	case ControlPlane:
		return []string{"etcd", "kube-apiserver", "kubectl"}, nil
	case Simulated:
		return []string{"etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler", "kwok"}, nil
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
	const containerd, kubernetes = "github.com/containerd/containerd/v2", "k8s.io/kubernetes"
	programs := map[string]program{
		"etcd":  {module: "kubernetes", pkg: "go.etcd.io/etcd/server/v3"},
		"runc":  {module: "runc", pkg: "github.com/opencontainers/runc", tags: seccomp, cgo: true},
		"crane": {module: "crane", pkg: "github.com/google/go-containerregistry/cmd/crane"},
		"kwok":  {module: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
		"pause": {module: "pause", pkg: "."},
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"} {
		programs[name] = program{module: "kubernetes", pkg: kubernetes + "/cmd/" + name, pinned: kubernetes, ldflags: kubernetesVersion}
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

// kubernetesVersion stamps the version: without it the components call themselves v0.0.0 and refuse each other.
func kubernetesVersion(version string) string {
	const pkg = " -X k8s.io/component-base/version."
	part := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(part) < 3 {
		return ""
	}
	return pkg + "gitVersion=" + version + pkg + "gitMajor=" + part[0] + pkg + "gitMinor=" + part[1]
}

// arguments of `go build` but for the output.
func (p program) arguments(version string) []string {
	ldflags := "-s -w"
	if p.ldflags != nil {
		ldflags += p.ldflags(version)
	}
	args := []string{"-trimpath", "-buildvcs=false", "-ldflags", ldflags}
	if p.tags != "" {
		args = append(args, "-tags", p.tags)
	}
	return append(args, p.pkg)
}

func (p program) environment() []string {
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	return []string{cgo, "GOWORK=off", "GOFLAGS=", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

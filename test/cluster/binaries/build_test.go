package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBatches(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  [][]string
	}{
		"programs of one module are built together": {
			[]string{"etcd", "kube-apiserver", "kube-controllers"}, [][]string{{"etcd", "kube-apiserver", "kube-controllers"}},
		},
		"programs of another module are not": {[]string{"etcd", "kwok"}, [][]string{{"etcd"}, {"kwok"}}},
		"only neighbours are, so that the order stays": {
			[]string{"etcd", "crane", "kubectl"}, [][]string{{"etcd"}, {"crane"}, {"kubectl"}},
		},
		"nothing to build": {nil, nil},
	}
	chosen := Cache{Kubernetes: "v1.0.0"}.batches([]string{"etcd", "kube-apiserver", "kubectl"})
	if diff := cmp.Diff([][]string{{"etcd"}, {"kube-apiserver", "kubectl"}}, chosen); diff != "" {
		t.Errorf("programs of a chosen version have a module of their own (-want +got):\n%s", diff)
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Cache{}.batches(c.names)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	args, err := cache.arguments([]string{"etcd", "kube-apiserver", "kubectl"}, "")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(args, " ")
	if n := strings.Count(all, "gitVersion=v1."); n != 1 {
		t.Errorf("the version is stamped %d times, want once: %s", n, all)
	}
	if want := "go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver " +
		"k8s.io/kubernetes/cmd/kubectl"; !strings.HasSuffix(all, want) {
		t.Errorf("packages are missing: %s", all)
	}
}

func TestExecutable(t *testing.T) {
	for name, want := range map[string]string{
		"etcd": "server", "pause": "pause", "runc": "runc", "kube-apiserver": "kube-apiserver",
		"kube-controllers":        "kube-controllers",
		"containerd-shim-runc-v2": "containerd-shim-runc-v2",
	} {
		if got := strings.TrimSuffix(catalogue()[name].executable(), exeSuffix()); got != want {
			t.Errorf("the go command calls %s %s, not %s", name, want, got)
		}
	}
}

// The build of a program that compiles in no time: the whole way from its source to its place.
func TestBuildPrograms(t *testing.T) {
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	cache.Dir = t.TempDir()
	var log strings.Builder
	if err := cache.BuildPrograms(t.Context(), []string{"pause"}, &log); err != nil {
		t.Fatal(err)
	}
	path, err := cache.Path("pause")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(cache.Dir, "bin", "unfinished*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if want := "building pause: up to program 1 of 1"; !strings.HasPrefix(log.String(), want) {
		t.Errorf("the log is %q, want the prefix %q", log.String(), want)
	}
}

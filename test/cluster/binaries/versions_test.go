package binaries

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The offered versions are patch releases of four minor versions in a row, one of them the pinned one.
func TestOffered(t *testing.T) {
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	cache, err = cache.Of("")
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := cache.KubernetesVersion()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := cache.Offered()
	if err != nil || len(versions) != 4 {
		t.Fatalf("offered are %v, %v, want four", versions, err)
	}
	found, before := false, 0
	for _, version := range versions {
		found = found || version == pinned
		number, err := strconv.Atoi(strings.TrimPrefix(Minor(version), "1."))
		if err != nil || before > 0 && number != before+1 {
			t.Errorf("%s does not follow the minor version %d: %v", version, before, err)
		}
		before = number
	}
	if !found {
		t.Errorf("the pinned version %s is not among %v", pinned, versions)
	}
}

// A chosen version changes the programs of Kubernetes and no other.
func TestOf(t *testing.T) {
	cache := Cache{Dir: t.TempDir(), Source: t.TempDir()}
	for name, content := range map[string]string{
		"kubernetes.versions": "# comment\nv1.34.4\nv1.36.3\n",
		"kubernetes/go.mod":   "require k8s.io/kubernetes v1.36.3\n",
	} {
		path := filepath.Join(cache.Source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	places := func(minor, wantVersion string) map[string]string {
		t.Helper()
		c, err := cache.Of(minor)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.KubernetesVersion(); err != nil || got != wantVersion {
			t.Errorf("version of %q is %s, %v, want %s", minor, got, err, wantVersion)
		}
		all := map[string]string{}
		for _, name := range []string{"etcd", "kube-controllers", "kubelet"} {
			if all[name], err = c.target(name); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	pinned, same, older := places("", "v1.36.3"), places("1.36", "v1.36.3"), places("1.34", "v1.34.4")
	for name, path := range pinned {
		if same[name] != path {
			t.Errorf("%s of the pinned minor version is %s, not %s", name, same[name], path)
		}
		if differs := older[name] != path; differs != (name == "kubelet") {
			t.Errorf("%s of 1.34 is %s, that of the pinned version %s", name, older[name], path)
		}
	}
	if _, err := cache.Of("1.3"); err == nil {
		t.Error("a version that is not offered is chosen")
	}
}

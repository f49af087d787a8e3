//go:build nightly

package cluster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestInstallCRDs(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Private: true})
	t.Run("tests of one package install the same, all at once", func(t *testing.T) {
		outcomes := make(chan error, 4)
		for range cap(outcomes) {
			go func() { outcomes <- c.InstallCRDs(t.Context(), "../../config/crd/bases") }()
		}
		for range cap(outcomes) {
			if err := <-outcomes; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("each is installed once, and again when its file changes", func(t *testing.T) { testInstallAgain(t, c) })
}

func testInstallAgain(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	content, err := os.ReadFile("../../config/crd/bases/apps.kruise.io_clonesets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "crd.yaml")
	install := func() (version string) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.InstallCRDs(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		version, err := c.Kubectl(t.Context(), "get", "crd", "clonesets.apps.kruise.io", "-o",
			"jsonpath={.metadata.resourceVersion}")
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	first := install()
	if again := install(); again != first {
		t.Errorf("the same file was written twice: versions %s and %s", first, again)
	}
	content = bytes.ReplaceAll(content, []byte("\n    name: v1beta1\n"),
		[]byte("\n    deprecated: true\n    name: v1beta1\n"))
	if changed := install(); changed == first {
		t.Error("a changed file was not installed")
	}
	if again, err := c.Kubectl(t.Context(), "get", "crd", "clonesets.apps.kruise.io", "-o",
		"jsonpath={.spec.versions[*].deprecated}"); err != nil || again != "true" {
		t.Errorf("deprecated: %q, %v; want true", again, err)
	}
}

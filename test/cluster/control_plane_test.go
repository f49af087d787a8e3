//go:build nightly

package cluster_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

func TestControlPlaneIsShared(t *testing.T) {
	t.Parallel()
	one, two := cluster.Start(t, cluster.Options{}), cluster.Start(t, cluster.Options{})
	if one.Config.Host != two.Config.Host {
		t.Errorf("two planes, %s and %s, want one", one.Config.Host, two.Config.Host)
	}
	alone := cluster.Start(t, cluster.Options{Private: true})
	if alone.Config.Host == one.Config.Host {
		t.Errorf("a private plane is the shared one")
	}
}

// A control plane without real nodes ends as a whole, so a test that ends deletes nothing.
func TestNamespaceStaysWithItsObjects(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	var namespace string
	t.Run("a test", func(t *testing.T) {
		namespace = c.Namespace(t)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"},
			Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "main", Image: "any"}}},
		}
		if err := c.Client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	})
	if other := c.Namespace(t); other == namespace {
		t.Errorf("two tests share the namespace %s", other)
	}
	var pod corev1.Pod
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pod"}, &pod); err != nil ||
		pod.DeletionTimestamp != nil {
		t.Errorf("pod of the test that ended: %v, deleted at %v", err, pod.DeletionTimestamp)
	}
}

// A run of several packages holds the control plane that their tests use.
func TestHold(t *testing.T) {
	t.Parallel()
	release, err := cluster.Hold(t.Context())
	if errors.Is(err, binaries.ErrMissing) && os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	one := cluster.Start(t, cluster.Options{})
	release()
	release()
	if _, err := one.Kubectl(t.Context(), "get", "--raw", "/readyz"); err != nil {
		t.Errorf("the control plane after the release of one of its holders: %v", err)
	}
}

func TestKubectl(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	out, err := c.Kubectl(t.Context(), "auth", "whoami")
	if err != nil || !strings.Contains(out, "system:masters") {
		t.Errorf("kubectl auth whoami: %q, %v; want a member of system:masters", out, err)
	}
	if _, err := c.Kubectl(t.Context(), "get", "nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("kubectl get nonsense: %v, want what kubectl printed", err)
	}
}

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

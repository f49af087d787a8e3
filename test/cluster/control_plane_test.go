//go:build envtest

package cluster_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestControlPlaneIsShared(t *testing.T) {
	one, two := cluster.Start(t, cluster.Options{}), cluster.Start(t, cluster.Options{})
	if one.Config.Host != two.Config.Host {
		t.Errorf("two planes, %s and %s, want one", one.Config.Host, two.Config.Host)
	}
	alone := cluster.Start(t, cluster.Options{Private: true})
	if alone.Config.Host == one.Config.Host {
		t.Errorf("a private plane is the shared one")
	}
}

func TestNamespaceGoesWithAllInIt(t *testing.T) {
	c := cluster.Start(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases"}})
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
	var pods corev1.PodList
	if err := c.Client.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
		t.Errorf("pods left in the namespace: %d (%v), want none", len(pods.Items), err)
	}
	err := c.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get namespace: %v, want not found", err)
	}
}

func TestKubectl(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	out, err := c.Kubectl(t.Context(), "auth", "whoami")
	if err != nil || !strings.Contains(out, "system:masters") {
		t.Errorf("kubectl auth whoami: %q, %v; want a member of system:masters", out, err)
	}
	if _, err := c.Kubectl(t.Context(), "get", "nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("kubectl get nonsense: %v, want what kubectl printed", err)
	}
}

// Tests of one package install the same CRDs, all at once.
func TestInstallAtTheSameTime(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	outcomes := make(chan error, 8)
	for range cap(outcomes) {
		go func() { outcomes <- c.InstallCRDs(t.Context(), "../../config/crd/bases") }()
	}
	for range cap(outcomes) {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
}

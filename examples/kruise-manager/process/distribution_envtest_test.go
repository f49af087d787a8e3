//go:build envtest

package process_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// With its gate the process copies a Secret to a new namespace, but not to its own, and ends without an error while the
// copies are watched.
func TestDistribution(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{
		"../../../config/crd/bases/apps.kruise.io_resourcedistributions.yaml",
	}})
	namespace := c.Namespace(t)
	s := start(t, c, namespace, "--feature-gates=ResourceDistributionGate=true", "--resourcedistribution-workers=2",
		"--enable-leader-election=false")
	web := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"web"}}}`))
	if err := c.Client.Patch(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, web); err != nil {
		t.Fatal(err)
	}
	d := &v1beta1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	d.Spec.Resource.Raw = []byte(
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"registry"},"stringData":{"user":"reader"}}`)
	d.Spec.Targets.NamespaceSelector.MatchLabels = map[string]string{"team": "web"}
	if err := c.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"team": "web"},
	}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "registry"}, &corev1.Secret{}); err != nil {
			return err
		}
		if err := c.Client.Get(ctx, types.NamespacedName{Name: "registry"}, d); err != nil || d.Status.Succeeded != 1 ||
			d.Status.Desired != 1 {
			return fmt.Errorf("the status is %+v, %w", d.Status, err)
		}
		return nil
	})
	if err := c.Client.Get(t.Context(),
		types.NamespacedName{Namespace: namespace, Name: "registry"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace of the manager has a copy: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

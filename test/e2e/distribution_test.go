//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// testDistribution: a Secret reaches new namespaces within a second, is updated in all of them, and removed from all.
func (m *deployed) testDistribution(t *testing.T) {
	team := m.Namespace(t)
	secret := func(user string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"registry"},"stringData":{"user":%q}}`,
			user)
	}
	d := &v1beta1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: team}}
	d.Spec.Resource.Raw = secret("reader")
	d.Spec.Targets.NamespaceSelector.MatchLabels = map[string]string{"team": team}
	if err := m.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil || d.Status.ObservedGeneration == 0 {
			return fmt.Errorf("the status is %+v, %w", d.Status, err)
		}
		return nil
	})
	const n = 5
	var names []string
	var took []time.Duration
	for i := range n {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", team, i), Labels: map[string]string{"team": team},
		}}
		if err := m.Client.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Client.Delete(context.WithoutCancel(t.Context()), namespace) })
		names = append(names, namespace.Name)
		copied := m.copied(t, namespace.Name, "reader")
		took = append(took, copied.CreationTimestamp.Sub(namespace.CreationTimestamp.Time))
	}
	// The times of API servers are in seconds. The machine may hold up one of the copies.
	if slices.Sort(took); took[n/2] > time.Second {
		t.Errorf("copies took %v", took)
	}
	update := fmt.Appendf(nil, `{"spec":{"resource":%s}}`, secret("writer"))
	if err := m.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, update)); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		m.copied(t, name, "writer")
	}
	if err := m.Client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		for _, name := range names {
			if err := m.Client.Get(ctx,
				types.NamespacedName{Namespace: name, Name: "registry"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the copy in %s: %w", name, err)
			}
		}
		return nil
	})
}

// copied waits until the copy in a namespace has a user.
func (m *deployed) copied(t *testing.T, namespace, user string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "registry"}, s); err != nil {
			return err
		}
		if string(s.Data["user"]) != user {
			return fmt.Errorf("%s has %q", namespace, s.Data)
		}
		return nil
	})
	return s
}

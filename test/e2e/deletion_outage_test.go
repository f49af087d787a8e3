//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// deletionOutage deletes protected objects before and during an outage of the manager.
type deletionOutage struct {
	*deployed
	protected string
}

// newDeletionOutage shows what holds while the manager runs: kubectl prints the promised text, and a namespace that was
// deleted is not kept by the protected objects in it.
func (m *deployed) newDeletionOutage(t *testing.T) *deletionOutage {
	t.Helper()
	o := &deletionOutage{deployed: m, protected: m.Namespace(t)}
	label := kruise.DeletionProtectionKey
	if _, err := m.Kubectl(t.Context(), "label", "namespace", o.protected, label+"=Always"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the namespace is deleted
		if _, err := m.Kubectl(context.WithoutCancel(t.Context()), "label", "namespace", o.protected, label+"-"); err != nil {
			t.Error(err)
		}
	})
	const text = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"
	o.refused(t, `admission webhook "vnamespace.kb.io" denied the request: `+text)
	plain := m.Namespace(t)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: plain, Name: "protected", Labels: map[string]string{label: "Always"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := m.Client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if err := m.Client.Delete(t.Context(), service); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("a protected Service: %v", err)
	}
	if _, err := m.Kubectl(t.Context(), "delete", "namespace", plain, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKey{Name: plain}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("namespace %s is still there", plain), err)
	})
	m.collects(t, m.Namespace(t))
	return o
}

// collects deletes a Deployment whose pod template has the label, and wants the garbage collector to delete its
// ReplicaSet.
func (m *deployed) collects(t *testing.T, namespace string) {
	t.Helper()
	labels := map[string]string{"app": "web", kruise.DeletionProtectionKey: "Always"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
	if err := m.Client.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	left := func(ctx context.Context, want int) error {
		var sets appsv1.ReplicaSetList
		if err := m.Client.List(ctx, &sets, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil ||
			len(sets.Items) != want {
			return errors.Join(fmt.Errorf("%d protected ReplicaSets, want %d", len(sets.Items), want), err)
		}
		return nil
	}
	eventually(t, func(ctx context.Context) error { return left(ctx, 1) })
	if _, err := m.Kubectl(t.Context(), "delete", "replicaset", "-n", namespace, "-l", "app=web"); err == nil ||
		!strings.Contains(err.Error(), "forbidden by ResourcesProtectionDeletion") {
		t.Errorf("a protected ReplicaSet: %v", err)
	}
	if err := m.Client.Delete(t.Context(), web, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return left(ctx, 0) })
}

// refused wants kubectl to print a text when it deletes the protected namespace.
func (o *deletionOutage) refused(t *testing.T, want string) {
	t.Helper()
	out, err := o.Kubectl(t.Context(), "delete", "namespace", o.protected)
	if err == nil || !strings.Contains(err.Error()+out, want) {
		t.Errorf("kubectl delete namespace prints %v\n%s\nwant %s", err, out, want)
	}
}

// away deletes while no replica runs. Without the policies every labelled object waits, with them API servers decide.
func (o *deletionOutage) away(t *testing.T) {
	t.Helper()
	o.refused(t, `failed calling webhook "vnamespace.kb.io"`)
	if _, err := o.Kubectl(t.Context(), "delete", "namespace", o.Namespace(t), "--wait=false"); err != nil {
		t.Errorf("a namespace without the label: %v", err)
	}
	policies := func(verb string) {
		if _, err := o.Kubectl(t.Context(), verb, "-k", "../../config/protection"); err != nil {
			t.Fatal(err)
		}
	}
	policies("apply")
	defer policies("delete")
	eventually(t, func(ctx context.Context) error {
		err := o.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.protected}}, client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the policy does not judge yet: %w", err)
		}
		return nil
	})
	o.refused(t,
		"ValidatingAdmissionPolicy 'kruisekit-deletion-always' with binding 'kruisekit-deletion-always' denied request: "+
			"forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always")
}

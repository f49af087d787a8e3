//go:build envtest

package statefulset

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/standin"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// The API server accepts the writes of claims and of their owners, and the deletion of a claim, which no set controls,
// reconciles the set whose pod waits for it.
func TestClaimsOnServer(t *testing.T) {
	t.Parallel()
	kit := podbench.New(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_statefulsets.yaml"}})
	kit.Beside(func(mgr ctrl.Manager) error {
		return (&standin.Kubelet{Client: mgr.GetClient(), Namespace: kit.Namespace, Node: "node-1"}).SetupWithManager(mgr)
	})
	kit.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := New(c, Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(t.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: kit.Namespace, Name: "web"}}
	scaled(2)(set)
	withClaims(deletes, deletes)(set)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	if err := kit.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	until := func(check func() error) {
		t.Helper()
		kit.Until(func() error {
			if err := kit.Look(set); err != nil {
				return err
			}
			return check()
		})
	}
	until(func() error { return settled(2)(set) })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: kit.Namespace, Name: "data-web-1"}}
	ownedBy := func(kind string) func() error {
		return func() error {
			if err := kit.Look(claim); err != nil {
				return err
			}
			if refs := claim.OwnerReferences; len(refs) != 1 || refs[0].Kind != kind {
				return fmt.Errorf("owners of the claim: %v, want one %s", refs, kind)
			}
			return nil
		}
	}
	until(ownedBy("StatefulSet"))
	resize := func(n int32) {
		t.Helper()
		before := set.DeepCopy()
		scaled(n)(set)
		if err := kit.Client.Patch(t.Context(), set, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	resize(1)
	until(func() error { return settled(1)(set) })
	until(ownedBy("Pod"))
	resize(2)
	until(func() error {
		if c := set.Status.Conditions; len(c) != 1 || c[0].Status != corev1.ConditionTrue ||
			c[0].Type != v1beta1.FailedCreatePod {
			return fmt.Errorf("conditions %v: the pod waits for its claim", c)
		}
		return nil
	})
	claim.Finalizers = nil // of the protection of claims in use
	if err := kit.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := kit.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	until(func() error { return settled(2)(set) })
}

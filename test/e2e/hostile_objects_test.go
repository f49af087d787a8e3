//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// as returns a client of another user.
func (m *deployed) as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(m.Config)
	config.Impersonate.UserName = user
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// oversize creates CloneSets that no pod needs, as 34 of which once took the memory of the manager.
func (a *tenant) oversize(t *testing.T) {
	t.Helper()
	for _, variables := range []int{12_000, 81_662} { // the second is almost as large as etcd accepts
		err := a.own.Create(t.Context(), ofEnvironment(a.namespace, "oversize", variables))
		if err == nil || !strings.Contains(err.Error(), "spec.template: Too long") {
			t.Errorf("a template of %d variables: %.300v", variables, err)
		}
	}
}

// preempt keeps a pod by a budget. The scheduler and the controller of taints are not refused.
func (a *tenant) preempt(t *testing.T) {
	t.Helper()
	server := a.Push(t, image.Spec{Name: "e2e/kept:1"})
	set := ofEnvironment(a.namespace, "kept", 1)
	set.Spec.Replicas = ptr.To[int32](1)
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64)
	set.Spec.Template.Spec.Containers[0].Image = server.Name
	budget := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "kept"}}
	budget.Spec.Selector = set.Spec.Selector
	budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	for _, o := range []client.Object{budget, set} {
		if err := a.own.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var pod *corev1.Pod
	eventually(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := a.own.List(ctx, &pods, client.InNamespace(a.namespace),
			client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		if len(pods.Items) != 1 || !ready(&pods.Items[0]) {
			return fmt.Errorf("%d pods, or none is ready", len(pods.Items))
		}
		pod = &pods.Items[0]
		err := a.own.Delete(ctx, pod.DeepCopy(), client.DryRunAll)
		if err == nil {
			return errors.New("the budget refuses no deletion")
		}
		if !apierrors.IsForbidden(err) && !apierrors.IsTooManyRequests(err) {
			return err
		}
		return nil
	})
	for _, user := range []string{"system:kube-scheduler", "system:serviceaccount:kube-system:node-controller"} {
		pods := a.as(t, user).CoreV1().Pods(a.namespace)
		if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("a tenant's budget refuses %s: %v", user, err)
		}
	}
}

// flip creates and deletes WorkloadSpreads of ever new names, 20 times a second. API servers compile the entries of
// pods again after each write of their configuration.
func (a *tenant) flip(t *testing.T) {
	t.Helper()
	const took, every, most = 6 * time.Second, 50 * time.Millisecond, 4
	before, n := a.generations(t), 0
	for end := time.Now().Add(took); time.Now().Before(end); n++ {
		name := fmt.Sprintf("flip-%d", n)
		spread := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
		spread.Spec.TargetReference = &v1beta1.TargetReference{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: name,
		}
		spread.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a"}}
		if err := a.own.Create(t.Context(), spread); err != nil {
			t.Fatal(err)
		}
		if err := a.own.Delete(t.Context(), spread); err != nil {
			t.Fatal(err)
		}
		pause(t.Context(), every)
	}
	writes := a.generations(t) - before
	t.Logf("%d WorkloadSpreads came and went: %d writes of the configurations of pods", n, writes)
	if writes > most {
		t.Errorf("%d writes of the configurations of pods, want at most %d", writes, most)
	}
}

// generations is the sum of the generations of both configurations of pods.
func (m *deployed) generations(t *testing.T) int64 {
	t.Helper()
	name := types.NamespacedName{Name: "kruise-pods-webhook-configuration"}
	var created admissionregistrationv1.MutatingWebhookConfiguration
	var disrupted admissionregistrationv1.ValidatingWebhookConfiguration
	if err := errors.Join(m.Client.Get(t.Context(), name, &created),
		m.Client.Get(t.Context(), name, &disrupted)); err != nil {
		t.Fatal(err)
	}
	return created.Generation + disrupted.Generation
}

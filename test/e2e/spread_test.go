//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// testSpread has three nodes as zones, of which the first is cordoned. The pods of a CloneSet and of a Deployment wait
// there, are deleted, and come back in the next zone until that is full; the rest goes to the last zone. A scale-in
// empties the last zone first.
func (m *deployed) testSpread(t *testing.T) {
	m.pushNginx(t)
	var nodes corev1.NodeList
	if err := m.Client.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	zones := map[string]string{"a": nodes.Items[0].Name, "b": nodes.Items[1].Name, "c": nodes.Items[2].Name}
	kubectl := func(ctx context.Context, arguments ...string) {
		if said, err := m.Kubectl(ctx, arguments...); err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, said)
		}
	}
	defer kubectl(context.WithoutCancel(t.Context()), "uncordon", zones["a"])
	kubectl(t.Context(), "cordon", zones["a"])
	t.Run("targets", func(t *testing.T) {
		for kind, version := range map[string]string{"CloneSet": "apps.kruise.io/v1alpha1", "Deployment": "apps/v1"} {
			t.Run(kind, func(t *testing.T) { t.Parallel(); m.testSpreadOf(t, kind, version, zones) })
		}
	})
}

// spreadTarget is a workload with nginx, and how to scale it.
func spreadTarget(kind, namespace string) (object client.Object, scale func(int32)) {
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.27"}}, TerminationGracePeriodSeconds: ptr.To[int64](1),
	}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web"}
	if kind == "CloneSet" {
		set := &v1beta1.CloneSet{ObjectMeta: meta, Spec: v1beta1.CloneSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		}}
		return set, func(n int32) { set.Spec.Replicas = &n }
	}
	d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	return d, func(n int32) { d.Spec.Replicas = &n }
}

func (m *deployed) testSpreadOf(t *testing.T, kind, version string, zones map[string]string) {
	namespace := m.Namespace(t)
	target, scale := spreadTarget(kind, namespace)
	ws := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	ws.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: version, Kind: kind, Name: "web"}
	for i, name := range []string{"a", "b", "c"} {
		s := v1beta1.WorkloadSpreadSubset{
			Name: name, RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{zones[name]}},
			}},
		}
		if i < 2 {
			s.MaxReplicas = ptr.To(intstr.FromInt32(2))
		}
		ws.Spec.Subsets = append(ws.Spec.Subsets, s)
	}
	ws.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type:     v1beta1.AdaptiveWorkloadSpreadScheduleStrategyType,
		Adaptive: &v1beta1.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](5)},
	}
	for _, o := range []client.Object{ws, target} {
		if err := m.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	m.spreadSent(t, namespace)
	for _, step := range []struct {
		replicas int32
		want     string
	}{{6, "map[b:2 c:4]"}, {8, "map[b:2 c:6]"}, {3, "map[b:2 c:1]"}} {
		eventually(t, func(ctx context.Context) error {
			if err := m.Client.Get(ctx, client.ObjectKeyFromObject(target), target); err != nil {
				return err
			}
			scale(step.replicas)
			return m.Client.Update(ctx, target)
		})
		eventually(t, func(ctx context.Context) error { return m.spreadOver(ctx, namespace, step.want, zones) })
	}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(ws), ws); err != nil {
			return err
		}
		all := ws.Status.SubsetStatuses
		if len(all) != 3 || all[1].Replicas != 2 || all[1].MissingReplicas != 0 || all[2].Replicas != 1 ||
			len(all[0].Conditions) == 0 || all[0].Conditions[0].Status != metav1.ConditionFalse {
			return fmt.Errorf("status %+v", all)
		}
		return nil
	})
}

// spreadSent waits until the entries of new pods select the namespace.
func (m *deployed) spreadSent(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := m.Client.Get(ctx, types.NamespacedName{Name: "kruise-pods-webhook-configuration"}, c); err != nil {
			return err
		}
		for _, w := range c.Webhooks {
			for _, r := range w.NamespaceSelector.MatchExpressions {
				if r.Operator == metav1.LabelSelectorOpIn && slices.Contains(r.Values, namespace) {
					return nil
				}
			}
		}
		return errors.New("no entry has the namespace")
	})
}

// spreadOver compares ready pods by subset, each on the node of its zone.
func (m *deployed) spreadOver(ctx context.Context, namespace, want string, zones map[string]string) error {
	var pods corev1.PodList
	if err := m.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	by := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		match, _ := subset.MatchOf(pod)
		if !ready(pod) || pod.DeletionTimestamp != nil || pod.Spec.NodeName != zones[match.Subset] {
			return fmt.Errorf("pod %s of subset %q on %q: ready %t", pod.Name, match.Subset, pod.Spec.NodeName, ready(pod))
		}
		by[match.Subset]++
	}
	if got := fmt.Sprint(by); got != want {
		return fmt.Errorf("pods by subset: %s, want %s", got, want)
	}
	return nil
}
